"""One MCP server as the engine sees it: how many calls at once, what to do when it is gone, and whether it changed."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import structlog
from mcp import MCPError
from pydantic import ValidationError

from engines.errors import InvalidTool, ToolFailed
from engines.mcp.breaker import Breaker
from engines.mcp.connection import Connection
from engines.mcp.definition import DIGEST, difference
from engines.mcp.failures import ConnectionGone, ServerUnreachable
from engines.mcp.listing import listed_tools
from engines.mcp.reaching import Reach
from engines.mcp.results import failure_of, result_of
from engines.plain import JSONObject
from engines.tool import ErrorType, Tool

log = structlog.get_logger(__name__)

RECHECK_SECONDS = 60.0


class Server:
    """Calls to one server. Stateless ones share a connection that is opened again when it breaks."""

    def __init__(
        self,
        reach: Reach,
        tools: Sequence[Tool],
        *,
        max_in_flight: int,
        seconds: float,
        call_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.reach = reach
        self._pinned = tuple(tool for tool in tools if DIGEST in tool.metadata)
        self._slots = asyncio.Semaphore(max_in_flight)
        self._seconds = seconds
        self._call_seconds = call_seconds
        self._clock = clock
        self._breaker = Breaker(clock)
        self._shared: Connection | None = None
        self._connecting = asyncio.Lock()
        self._checking = asyncio.Lock()
        self._check_due = clock()
        self._refusals: dict[str, str] = {}

    @property
    def name(self) -> str:
        """What the server is called."""
        return self.reach.name

    async def close(self) -> None:
        """Close the shared connection and what all share."""
        if self._shared is not None:
            await self._shared.close()
            self._shared = None
        await self.reach.close()

    async def conversation(self) -> Connection:
        """Open a connection for one conversation alone; ToolFailed (network) when the server cannot be reached."""
        async with self._slots:
            return await self._connected("legacy")

    @property
    def leaves_behind(self) -> bool:
        """Whether a conversation's session outlives its connection."""
        return self.reach.leaves_behind

    async def end(self, handle: JSONObject) -> None:
        """End a conversation's session on the server; ServerUnreachable when it cannot be told."""
        await self.reach.end(handle)

    async def call(self, tool: Tool, arguments: JSONObject) -> Any:
        """Call a tool on the shared connection; ToolFailed."""
        async with self._slots:
            self._let_through()
            try:
                return await self._called_shared(tool, arguments)
            except ConnectionGone as gone:
                self._breaker.failed(str(gone))
                raise ToolFailed(ErrorType.network, f"{self.name}: {gone}") from gone

    async def call_on(self, own: Connection, tool: Tool, arguments: JSONObject) -> Any:
        """Call a tool on a conversation's own connection; ToolFailed, or ConnectionGone."""
        async with self._slots:
            return await self._called(own, tool, arguments)

    async def _called_shared(self, tool: Tool, arguments: JSONObject) -> Any:
        connection = await self._shared_connection()
        try:
            return await self._called(connection, tool, arguments)
        except ConnectionGone as gone:
            connection.lose(str(gone))
            if connection.link.session_gone is None:
                raise
        # The server forgot a session that held nothing, and turned the call away: it is asked once more.
        return await self._called(await self._shared_connection(), tool, arguments)

    async def _called(self, connection: Connection, tool: Tool, arguments: JSONObject) -> Any:
        await self._check(connection)
        if tool.namespace in self._refusals:
            raise ToolFailed(ErrorType.permission, self._refusals[tool.namespace])
        try:
            async with asyncio.timeout(self._call_seconds):
                answer = await connection.call(tool.name, arguments)
        except TimeoutError as error:
            raise ToolFailed(ErrorType.timeout, f"{self.name}: no answer in {self._call_seconds:g} seconds") from error
        except MCPError as error:
            raise await self._sorted(error, connection) from error
        except ValidationError as error:
            message = f"{self.name}: the answer is no tool result: {error.errors()[0]['msg']}"
            raise ToolFailed(ErrorType.unparseable_result, message) from error
        self._breaker.succeeded()
        return result_of(answer, tool)

    async def _sorted(self, error: MCPError, connection: Connection) -> ToolFailed | ConnectionGone:
        """Tell a failed call from a connection or a session that is gone."""
        gone = connection.link.session_gone or await connection.end_noticed(error)
        if gone is not None:
            return ConnectionGone(gone)
        failure = failure_of(error)
        if failure.error_type is ErrorType.network:
            self._breaker.failed(failure.message)
        return failure

    # Connecting

    async def _shared_connection(self) -> Connection:
        if self._shared is not None and self._shared.lost is None:
            return self._shared
        async with self._connecting:
            if self._shared is None or self._shared.lost is not None:
                broken, self._shared = self._shared, None
                if broken is not None:
                    await broken.close()
                self._shared = await self._connected("auto")
            return self._shared

    async def _connected(self, mode: str) -> Connection:
        """Connect after the pause that earlier failures ask for."""
        self._let_through()
        await asyncio.sleep(self._breaker.pause_seconds())
        try:
            connection = await self.reach.connect(mode=mode, tools_changed=self._tools_changed)
        except ServerUnreachable as error:
            self._breaker.failed(str(error))
            raise ToolFailed(ErrorType.network, str(error)) from error
        self._breaker.succeeded()
        return connection

    def _let_through(self) -> None:
        """ToolFailed while the server is known not to answer, so that nobody waits for it."""
        pause = self._breaker.pause_seconds()
        if self._breaker.is_open and pause > 0:
            message = f"{self.name} does not answer; asked again in {pause:.0f} seconds: {self._breaker.cause}"
            raise ToolFailed(ErrorType.network, message)
        self._breaker.trying()

    # Pinned tools

    def _tools_changed(self) -> None:
        self._check_due = self._clock()

    async def _check(self, connection: Connection) -> None:
        """Compare what the server lists with what was pinned: at first, when it says so, and once a minute (S9)."""
        if not self._pinned or self._clock() < self._check_due:
            return
        async with self._checking:
            if self._clock() < self._check_due:
                return
            due, self._check_due = self._check_due, self._clock() + RECHECK_SECONDS
            try:
                self._refusals = await self._compared(connection)
            except BaseException:
                self._check_due = due
                raise

    async def _compared(self, connection: Connection) -> dict[str, str]:
        try:
            async with asyncio.timeout(self._seconds):
                listed = {tool.name: tool for tool in await listed_tools(connection.client)}
        except TimeoutError as error:
            raise ToolFailed(ErrorType.timeout, f"{self.name}: not listed in {self._seconds:g} seconds") from error
        except MCPError as error:
            raise await self._sorted(error, connection) from error
        except (InvalidTool, ValidationError) as error:
            return {tool.namespace: f"{self.name} is refused: {error}" for tool in self._pinned}
        refusals: dict[str, str] = {}
        for tool in self._pinned:
            now = listed.get(tool.name)
            changed = "it is gone" if now is None else difference(tool, now)
            if changed:
                refusals.setdefault(tool.namespace, _refusal(self.name, tool, changed))
        for namespace, refusal in refusals.items():
            log.warning("an mcp server changed its tools", namespace=namespace, server=self.name, cause=refusal)
        return refusals


def _refusal(server: str, tool: Tool, changed: str) -> str:
    return (
        f"namespace {tool.namespace!r} is refused: {server} no longer offers the tool {tool.name!r} as it was when the "
        f"run was submitted ({changed}); submit again to accept the change"
    )
