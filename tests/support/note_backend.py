"""A stateful REST backend for tests of dying workers: a session outlives whoever began it, until somebody ends it.

`POST /sessions/ID` begins one, `DELETE /sessions/ID` ends it, `POST /notes` with an `X-Session` header writes into it.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.http_backend import HttpBackend, Received, Reply


@dataclass
class NoteBackend:
    """What the server saw. `most` is the largest number of sessions open at once.

    The first `refusals` times somebody ends a session it is answered by 500.
    """

    url: str = ""
    refusals: int = 0
    open: dict[str, list[str]] = field(default_factory=dict)
    opened: int = 0
    most: int = 0
    strangers: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    async def answer(self, request: Received) -> Reply:
        match request.method, request.path.split("/")[1:]:
            case "POST", ["sessions", name]:
                self.opened += name not in self.open
                self.open.setdefault(name, [])
                self.most = max(self.most, len(self.open))
                return Reply({}, 201)
            case "DELETE", ["sessions", name]:
                return self._end(name)
            case "POST", ["notes"]:
                notes = self.open.get(request.header("x-session") or "")
                if notes is None:
                    self.strangers += 1
                    return Reply({"error": "no such session"}, 410)
                notes.append(request.json["note"])
                return Reply({"notes": len(notes)})
            case _:
                return Reply({"error": "no such path"}, 404)

    def _end(self, name: str) -> Reply:
        if self.refused[name] < self.refusals:
            self.refused[name] += 1
            return Reply({"error": "not now"}, 500)
        return Reply({}, 204 if self.open.pop(name, None) is not None else 404)


@contextmanager
def note_backend() -> Iterator[NoteBackend]:
    """Serve in a thread for the block."""
    backend, loop = NoteBackend(), asyncio.new_event_loop()
    ready, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        handler = HttpBackend(backend.answer)
        server = await asyncio.start_server(handler.serve, "127.0.0.1", 0)
        backend.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await stop.wait()
        server.close()
        await handler.end()
        await server.wait_closed()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait()
    try:
        yield backend
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()
