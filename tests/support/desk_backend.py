"""A stateful backend for tests: a TCP server that counts its open sessions; one connection is one session.

A killed worker's connections close with it, so the count is the truth whatever dies.
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class DeskBackend:
    """What the server saw. `most` is the largest number of sessions open at once."""

    port: int = 0
    now: int = 0
    most: int = 0
    opened: int = 0
    closed: int = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.now += 1
        self.opened += 1
        self.most = max(self.most, self.now)
        try:
            notes: list[str] = []
            while line := await reader.readline():
                notes.append(json.loads(line)["note"])
                writer.write(json.dumps({"notes": len(notes)}).encode() + b"\n")
                await writer.drain()
        except ConnectionError:
            pass  # a killed worker
        finally:
            self.now -= 1
            self.closed += 1
            writer.close()


@contextmanager
def desk_backend() -> Iterator[DeskBackend]:
    """Serve in a thread for the block."""
    backend = DeskBackend()
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def serve() -> None:
        server = await asyncio.start_server(backend.handle, "127.0.0.1", 0)
        backend.port = server.sockets[0].getsockname()[1]
        ready.set()
        async with server:
            await stop.wait()
            server.close()

    stop = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait()
    try:
        yield backend
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()
