"""All tools of a server: page after page, with an end (rule F23)."""

from typing import TYPE_CHECKING

from engines.errors import InvalidTool
from engines.mcp.definition import Listed
from engines.mcp.text import printable

if TYPE_CHECKING:
    from mcp import Client

MAX_PAGES = 100
MAX_TOOLS = 10_000


async def listed_tools(client: "Client") -> list[Listed]:
    """Follow `next_cursor` to the end; InvalidTool for a listing without end or with one name twice."""
    tools: list[Listed] = []
    cursor: str | None = None
    cursors: set[str] = set()
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += [Listed.of(tool) for tool in page.tools]
        cursor = page.next_cursor
        if len(tools) > MAX_TOOLS:
            raise InvalidTool(f"the server lists more than {MAX_TOOLS:,} tools")
        if not cursor:
            return _each_once(tools)
        if cursor in cursors:
            raise InvalidTool("the server's list of tools goes in a circle: one page leads back to an earlier one")
        cursors.add(cursor)
    raise InvalidTool(f"the server's list of tools has more than {MAX_PAGES} pages")


def _each_once(tools: list[Listed]) -> list[Listed]:
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise InvalidTool(f"the server lists the tool {printable(double, 100)!r} twice")
    return tools
