"""The `mcp` engine: calls go to MCP servers, on a connection of the conversation's own where a server keeps state."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Self

from engines.checked import checked
from engines.engine import ToolEngine
from engines.errors import SessionLost, ToolFailed
from engines.kind_settings import EngineParts
from engines.mcp.failures import ConnectionGone
from engines.mcp.replay import replayable
from engines.mcp.settings import McpSettings
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall
from engines.toolset import Toolset

if TYPE_CHECKING:
    from engines.mcp.server import Server

# A replayed call that fails in these ways has not made its part of the state; in any other it failed before, too.
_STATE_MISSING = frozenset({ErrorType.network, ErrorType.timeout, ErrorType.permission})


class McpToolEngine(ToolEngine):
    """`servers` answers which server a tool (by qualified name) is called on; `own` are the stateful namespaces.

    A conversation with tools of a stateful namespace gets a connection, and so a session, of its own. What such a
    session holds on the server is told by its scratch, `{server: {"mcp_session_id", "url"}}`, so that another process
    can end it. It cannot be taken over: a state that is restored is made again by replaying the history's calls.
    """

    def __init__(
        self,
        toolsets: Sequence[Toolset],
        servers: Mapping[str, "Server"],
        *,
        own: Collection[str],
        on_lost_session: str = "replay",
        **contract: Any,
    ) -> None:
        self._own = frozenset(own)
        super().__init__(toolsets, **contract)
        self._servers = servers
        self._replays = on_lost_session == "replay"

    @classmethod
    def from_parts(cls, parts: EngineParts) -> Self:
        """Find out which servers are meant; nothing is contacted yet."""
        settings = checked(McpSettings, parts.settings, at=parts.at)
        # mcp takes a second to import, and most recipes need none of it.
        from engines.mcp.wiring import servers_of  # noqa: PLC0415

        own = [
            toolset.namespace
            for toolset in parts.toolsets
            if (settings.session or ("per_conversation" if toolset.stateful else "shared")) == "per_conversation"
        ]
        return cls(
            parts.toolsets,
            servers_of(settings, parts.toolsets, at=parts.at),
            own=own,
            on_lost_session=settings.on_lost_session,
            **parts.contract(settings),
        )

    async def close(self) -> None:
        """Close every server's shared connection, also after one that raises."""
        async with AsyncExitStack() as closing:
            for server in dict.fromkeys(self._servers.values()):
                closing.push_async_callback(server.close)

    def leaves_behind(self, namespaces: Collection[str]) -> bool:
        """Whether sessions of these namespaces stay on a server when this process dies."""
        return any(server.leaves_behind for server in self._own_servers(namespaces))

    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> Any:
        server = self._servers.get(tool.qualified_name)
        if server is None:
            message = f"tool {tool.qualified_name!r} names no server (mcp_base_url). Was it loaded via MCPToolLoader?"
            raise ToolFailed(ErrorType.execution, message)
        if tool.namespace not in self._own:
            return await server.call(tool, call.arguments)
        try:
            return await server.call_on(session.resources[server.name], tool, call.arguments)
        except ConnectionGone as gone:
            raise SessionLost(tool.namespace, session.id, str(gone)) from gone

    # A conversation's own connections

    async def _open_session(self, session: Session) -> None:
        """Connect to each stateful server in turn, and make the restored state again; or leave nothing open (E22)."""
        session.scratch = {}  # A restored one tells of a session that its own process, or the reaper, ends.
        try:
            for server in self._own_servers(filter(session.needs, self.toolsets)):
                connection = await server.conversation()
                session.resources[server.name] = connection
                if connection.link.handle is not None:
                    session.scratch[server.name] = connection.link.handle
                await self._restore(session, server)
        except BaseException:
            await self._close_session(session)
            raise

    async def _close_session(self, session: Session) -> None:
        """End each session on its server, and the connection; told by the scratch alone when there is no connection."""
        servers = {server.name: server for server in self._servers.values()}
        async with AsyncExitStack() as closing:
            for connection in session.resources.values():
                closing.push_async_callback(connection.close)
            for name, handle in session.scratch.items():
                if name in servers:
                    closing.push_async_callback(servers[name].end, handle)

    async def _restore(self, session: Session, server: "Server") -> None:
        """Replay what the history did to this server's state; SessionLost when that fails or must not be done."""
        tools = {
            tool.qualified_name: (tool, toolset.defaults_for(tool).timeout_seconds)
            for toolset in self.toolsets.values()
            for tool in toolset.tools
            if toolset.namespace in self._own and self._servers.get(tool.qualified_name) is server
        }
        for call in replayable(session.history, tools):
            if not self._replays:
                cause = "what it did before is lost, and the engine says on_lost_session: fail"
                raise SessionLost(call.namespace, session.id, cause)
            tool, seconds = tools[call.qualified_name]
            try:
                async with asyncio.timeout(seconds):
                    await server.call_on(session.resources[server.name], tool, call.arguments)
            except (TimeoutError, ConnectionGone, ToolFailed) as error:
                if isinstance(error, ToolFailed) and error.error_type not in _STATE_MISSING:
                    continue
                cause = f"{call.qualified_name} failed while it was replayed: {str(error) or 'no answer in time'}"
                raise SessionLost(call.namespace, session.id, cause) from error

    def _depends_on_session(self, tool: Tool, toolset: Toolset) -> bool:
        """A conversation's own connection is there for the state that it has."""
        return toolset.namespace in self._own

    def _own_servers(self, namespaces: Iterable[str]) -> list["Server"]:
        """The servers that a conversation with tools of these namespaces is connected to by itself."""
        mine = self._own.intersection(namespaces)
        tools = (tool for namespace in sorted(mine) for tool in self.toolsets[namespace].tools)
        found = (self._servers.get(tool.qualified_name) for tool in tools)
        return list(dict.fromkeys(server for server in found if server is not None))
