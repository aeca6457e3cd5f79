"""Threads for functions that block: few, quick to reach, and never in the way of the process's end."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any


@dataclass(frozen=True, slots=True)
class _Work:
    function: Callable[[], Any]
    context: contextvars.Context
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Any]"


class Threads:
    """At most `most` threads, started when they are needed, for one event loop.

    They are daemons: a user's function that hangs for ever holds one of them, but not the process when it ends (the
    threads of concurrent.futures are joined at exit), and a hop costs half the CPU.
    """

    def __init__(self, most: int, *, name: str) -> None:
        self._most = most
        self._name = name
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._started = 0
        self._unfinished = 0

    async def run(self, function: Callable[[], Any]) -> Any:
        """Return what the function returns; a cancelled caller leaves it running and forgets it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._unfinished += 1
        self._queue.put(_Work(function, contextvars.copy_context(), loop, future))
        if self._unfinished > self._started < self._most:
            self._started += 1
            threading.Thread(target=self._work, name=f"{self._name}-{self._started}", daemon=True).start()
        return await future

    def close(self) -> None:
        """Let idle threads end, and busy ones when they are done; nobody waits for them."""
        for _ in range(self._started):
            self._queue.put(None)
        self._started = 0

    def _work(self) -> None:
        while (work := self._queue.get()) is not None:
            result, error = _outcome(work)
            try:
                work.loop.call_soon_threadsafe(self._settle, work.future, result, error)
            except RuntimeError:  # The loop is closed: nobody waits for the outcome.
                return

    def _settle(self, future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
        self._unfinished -= 1
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)


def _outcome(work: _Work) -> tuple[Any, BaseException | None]:
    if work.future.cancelled():
        return None, None
    try:
        return work.context.run(work.function), None
    except StopIteration as error:  # A future cannot carry it.
        return None, RuntimeError(f"the function raised {error!r}")
    except BaseException as error:  # noqa: BLE001 - foreign code in a thread: all of it is raised where it is awaited.
        return None, error
