"""A server's tools listed once, for the registry."""

import asyncio

from mcp import MCPError
from pydantic import ValidationError

from engines.errors import InvalidTool
from engines.mcp.failures import ServerUnreachable, cause_of
from engines.mcp.listing import listed_tools
from engines.mcp.settings import McpConnection
from engines.mcp.wiring import reach_of
from engines.tool import Tool

_LISTING_SECONDS = 10.0


async def tools_listed(settings: McpConnection, namespace: str) -> list[Tool]:
    """Connect, list, close; ServerUnreachable or InvalidTool say what stands in the way."""
    seconds = settings.timeout or _LISTING_SECONDS
    reach = reach_of(settings, seconds=seconds)
    try:
        connection = await reach.connect(mode="auto", tools_changed=lambda: None)
        try:
            async with asyncio.timeout(seconds):
                listed = await listed_tools(connection.client)
        except TimeoutError:
            raise ServerUnreachable(f"{reach.name}: its tools were not listed within {seconds:g} seconds") from None
        except MCPError as error:
            cause = await connection.end_noticed(error) or error.error.message
            raise ServerUnreachable(f"{reach.name}: {cause_of(ServerUnreachable(cause))}") from error
        except ValidationError as error:
            raise InvalidTool(f"{reach.name}: its list of tools cannot be read: {_first(error)}") from error
        finally:
            await connection.close()
        return [tool.as_tool(namespace, base_url=reach.name, transport=reach.transport) for tool in listed]
    finally:
        await reach.close()


def _first(error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
