"""Tools that an MCP server lists: `{type: mcp, url | command, namespace, engine, …}`; asked once, at submit."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from pydantic import Field

from engines.checked import checked
from engines.errors import ConfigurationInvalid, InvalidTool
from engines.loaders.entries import Entry, Surroundings
from engines.mcp.failures import ServerUnreachable
from engines.mcp.settings import McpConnection
from engines.plain import JSONObject
from engines.tool import DEFAULT_NAMESPACE, Tool


class McpEntry(Entry, McpConnection):
    """A server whose tools are taken as it lists them (rule D39); `timeout` bounds connecting and listing."""

    timeout: float | None = Field(default=10.0, gt=0, le=86_400)


def load(entry: JSONObject, surroundings: Surroundings) -> list[Tool]:
    """Connect, list every page, close; ConfigurationInvalid stands at the entry's `url` or `command`."""
    written = checked(McpEntry, entry, at=surroundings.at)
    at = (*surroundings.at, "command" if written.url is None else "url")
    if written.url is None and written.command is None:
        raise ConfigurationInvalid("an mcp entry needs the `url` or the `command` of its server", at=surroundings.at)
    settings = checked(McpEntry, surroundings.resolve(entry, surroundings.at), at=surroundings.at)
    # mcp takes a second to import, and most recipes need none of it.
    from engines.mcp.loading import tools_listed  # noqa: PLC0415

    try:
        # In a thread with a loop of its own: whoever loads a recipe may be inside a running loop.
        with ThreadPoolExecutor(1, thread_name_prefix="mcp listing") as threads:
            listing = tools_listed(settings, settings.namespace or DEFAULT_NAMESPACE)
            return threads.submit(asyncio.run, listing).result()
    except ServerUnreachable as error:
        raise ConfigurationInvalid(f"cannot list the tools of this server: {error}", at=at) from error
    except InvalidTool as error:
        raise ConfigurationInvalid(str(error), at=at) from error
