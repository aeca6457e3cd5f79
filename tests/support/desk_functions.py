"""Tools on the stateful backend of tests: a session is a connection, opened at setup and closed at teardown."""

import asyncio
import json
import os
from typing import Any

_connections: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}


async def open_desk(session_id: str, context: Any) -> None:
    _connections[session_id] = await asyncio.open_connection("127.0.0.1", int(os.environ["DESK_PORT"]))


async def close_desk(session_id: str, context: Any) -> None:
    reader, writer = _connections.pop(session_id)
    writer.write_eof()
    await reader.read()  # the backend has noticed: a permit that is handed on now opens no session beside this one
    writer.close()
    await writer.wait_closed()


async def take_note(note: str, context: Any) -> dict[str, Any]:
    reader, writer = _connections[context.session_id]
    writer.write(json.dumps({"note": note}).encode() + b"\n")
    await writer.drain()
    answer: dict[str, Any] = json.loads(await reader.readline())
    return answer
