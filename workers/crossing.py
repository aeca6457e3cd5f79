"""The crossing between the two threads of a worker: calls into the event loop, and callbacks back to kombu's hub."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import structlog
from vine import promise

log = structlog.get_logger(__name__)

Letter = tuple[Callable[..., Any], tuple[Any, ...]]


class Crossing:
    """Two mailboxes, each in order; one wake-up serves any number of letters."""

    __slots__ = ("_hub", "_loop", "_to_hub", "_to_hub_woken", "_to_loop", "_to_loop_woken")

    def __init__(self, loop: asyncio.AbstractEventLoop, hub: Any) -> None:
        self._loop = loop
        self._hub = hub
        self._to_loop: deque[Letter] = deque()
        self._to_hub: deque[Letter] = deque()
        self._to_loop_woken = False
        self._to_hub_woken = False

    def to_loop(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function in the loop's thread; from any thread."""
        self._to_loop.append((function, arguments))
        if not self._to_loop_woken:
            self._to_loop_woken = True
            try:
                self._loop.call_soon_threadsafe(self._take)
            except RuntimeError:  # the loop is closed: nothing is left to call
                self._to_loop.clear()

    def _take(self) -> None:
        self._to_loop_woken = False
        while self._to_loop:
            function, arguments = self._to_loop.popleft()
            function(*arguments)

    def to_hub(self, callback: Callable[..., Any] | None, *arguments: Any) -> None:
        """Call a callback in the hub's thread; from the loop's thread."""
        if callback is None:
            return
        self._to_hub.append((callback, arguments))
        if not self._to_hub_woken:
            self._to_hub_woken = True
            self._hub.call_soon(promise(self.deliver))

    def deliver(self) -> None:
        """Call what waits for the hub; in the hub's thread."""
        self._to_hub_woken = False
        while self._to_hub:
            callback, arguments = self._to_hub.popleft()
            try:
                callback(*arguments)
            except Exception:  # one callback of Celery's must not stop those of the other jobs
                log.exception("a callback of the pool failed", callback=getattr(callback, "__qualname__", "?"))
