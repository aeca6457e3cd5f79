"""mcp's transport over a child's stdin and stdout: bounded lines, noise left out, the child reaped at the end."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import ErrorData, JSONRPCError
from mcp.shared.message import SessionMessage
from mcp.types import INTERNAL_ERROR, jsonrpc_message_adapter

from engines.mcp.child import Child, Command
from engines.mcp.lines import Lines, Overlong
from engines.mcp.text import printable

log = structlog.get_logger(__name__)

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
Lose = Callable[[str], None]
"""Says that the connection is gone, and why."""

_NOISE_CHARS = 200


@asynccontextmanager
async def stdio_streams(command: Command, *, max_message_bytes: int, lose: Lose) -> AsyncIterator[Streams]:
    """Start the server and yield the two streams that mcp's client reads and writes."""
    child = await Child.start(command)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage](0)
    pipes = _Pipes(child, command.name, Lines(max_message_bytes), max_message_bytes, lose)
    try:
        async with anyio.create_task_group() as tasks, to_client, from_server, to_server, from_client:
            tasks.start_soon(pipes.read_into, to_client)
            tasks.start_soon(pipes.write_from, from_client)
            try:
                yield from_server, to_server
            finally:
                with anyio.CancelScope(shield=True):
                    await child.stop()
                tasks.cancel_scope.cancel()
    except BaseException:
        await child.stop()  # When the scope above was never entered; harmless when it has been stopped.
        raise


class _Pipes:
    """The two tasks between a child's pipes and the client's streams."""

    def __init__(self, child: Child, name: str, lines: Lines, max_bytes: int, lose: Lose) -> None:
        self._child = child
        self._name = name
        self._lines = lines
        self._max_bytes = max_bytes
        self._lose = lose
        self._noise = 0

    async def read_into(self, to_client: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Hand every message on; at the end of its output say what became of the server."""
        async with to_client:
            try:
                while chunk := await self._child.read():
                    for line in self._lines.feed(chunk):
                        message = self._overlong(line) if isinstance(line, Overlong) else self._message(line)
                        if message is not None:
                            await to_client.send(message)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # The client has closed: nobody is told anything any more.
            # Before the stream closes: whoever waits for an answer then learns why there is none.
            self._lose(await self._child.epitaph())

    async def write_from(self, from_client: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write every message as one line; a server that does not listen is lost."""
        try:
            async for sent in from_client:
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                await self._child.write(text.encode() + b"\n")
        except ConnectionError:
            self._lose(await self._child.epitaph())

    def _message(self, line: bytes) -> SessionMessage | None:
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            self._noise += 1
            shown = printable(line[:_NOISE_CHARS].decode("utf-8", "replace"), _NOISE_CHARS)
            log.debug("an mcp server wrote no message", process=self._name, count=self._noise, line=shown)
            return None

    def _overlong(self, line: Overlong) -> SessionMessage | None:
        """Answer the request in the server's place; a line that answers nobody knows whom ends the connection."""
        said = f"the server's message is larger than {self._max_bytes} bytes"
        if line.request_id is None:
            self._lose(said)
            return None
        error = ErrorData(code=INTERNAL_ERROR, message=said)
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=line.request_id, error=error))
