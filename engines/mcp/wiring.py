"""Which server each tool of an engine is called on: the engine's own, or the one that the tool was loaded from."""

from collections.abc import Sequence

from engines.errors import ConfigurationInvalid, Place
from engines.mcp.definition import BASE_URL, TRANSPORT
from engines.mcp.endpoints import Endpoint, candidates, shown
from engines.mcp.reaching import Reach, StdioReach, UrlReach
from engines.mcp.server import Server
from engines.mcp.settings import McpConnection, McpSettings
from engines.network.origins import Origin, OriginInvalid
from engines.tool import Tool
from engines.toolset import Toolset

CONNECT_SECONDS = 30.0
STDIO = "stdio"


def servers_of(settings: McpSettings, toolsets: Sequence[Toolset], *, at: Place) -> dict[str, Server]:
    """Return the server of each tool by qualified name; tools that tell of none are left out (rule D44)."""
    tools = [tool for toolset in toolsets for tool in toolset.tools]
    if settings.url is not None or settings.command is not None:
        server = _server(settings, _reach_of(settings, tools), tools)
        return {tool.qualified_name: server for tool in tools}
    servers = {}
    for base_url in dict.fromkeys(_base_url_of(tool) for tool in tools):
        if base_url is not None:
            its = [tool for tool in tools if _base_url_of(tool) == base_url]
            server = _server(settings, _loaded_from(settings, base_url, its[0], at=at), its)
            servers.update({tool.qualified_name: server for tool in its})
    return servers


def reach_of(settings: McpConnection, *, seconds: float, found: Endpoint | None = None) -> Reach:
    """Return the way to the server that settings name by `url` or `command`."""
    if settings.url is None:
        return StdioReach(settings, seconds=seconds)
    return UrlReach(settings, candidates(settings.url, settings.transport, found=found), seconds=seconds)


def _reach_of(settings: McpSettings, tools: Sequence[Tool]) -> Reach:
    found = next((_endpoint_of(tool) for tool in tools if _endpoint_of(tool) is not None), None)
    return reach_of(settings, seconds=settings.timeout or CONNECT_SECONDS, found=found)


def _loaded_from(settings: McpSettings, base_url: str, tool: Tool, *, at: Place) -> Reach:
    """Return the way to the server that a tool says it is of; what a tool says has no right to private addresses."""
    if base_url.startswith(f"{STDIO}:"):
        message = f"the tools of {tool.namespace!r} are of a server that is started; say how by `command` and `args`"
        raise ConfigurationInvalid(message, at=at)
    try:
        Origin.of(base_url)
    except OriginInvalid as error:
        message = f"tool {tool.qualified_name!r}: metadata.{BASE_URL}: {error}"
        raise ConfigurationInvalid(message, at=at) from error
    endpoint = _endpoint_of(tool)
    endpoints = (endpoint,) if endpoint is not None else candidates(base_url, settings.transport)
    return UrlReach(settings, endpoints, seconds=settings.timeout or CONNECT_SECONDS)


def _server(settings: McpSettings, reach: Reach, tools: Sequence[Tool]) -> Server:
    return Server(
        reach,
        tools,
        max_in_flight=settings.max_in_flight,
        seconds=settings.timeout or CONNECT_SECONDS,
        call_seconds=settings.timeout,
    )


def _base_url_of(tool: Tool) -> str | None:
    base_url = tool.metadata.get(BASE_URL)
    return base_url if isinstance(base_url, str) and base_url else None


def _endpoint_of(tool: Tool) -> Endpoint | None:
    """Return where the loader found the tool's server."""
    base_url = _base_url_of(tool)
    match tool.metadata.get(TRANSPORT):
        case "http" | "sse" as kind if base_url is not None:
            return Endpoint(kind, shown(base_url))
        case _:
            return None
