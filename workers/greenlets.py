"""Lets plain code call coroutines: Celery's tracer runs in a greenlet that hands awaitables up to an asyncio task.

The trick is SQLAlchemy's: the tracer stays as it is, so signals, ``self.request`` and failure handling work as ever.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

from greenlet import getcurrent, greenlet

Translate = Callable[[BaseException], BaseException]
"""What an exception at an await looks like to the coroutine (a time limit is a cancellation in disguise)."""


class TracerGreenlet(greenlet):  # type: ignore[misc]  # greenlet is untyped
    """Runs a plain callable; the awaitables met inside are awaited by the asyncio task that owns it."""

    translate: Translate


class Traced:
    """Awaitable that drives one tracer greenlet."""

    __slots__ = ("_arguments", "_greenlet")

    def __init__(self, function: Callable[..., Any], translate: Translate, *arguments: Any) -> None:
        self._greenlet = TracerGreenlet(function)
        self._greenlet.gr_context = getcurrent().gr_context
        self._greenlet.translate = translate
        self._arguments = arguments

    def __await__(self) -> Generator[Any, Any, Any]:
        running = self._greenlet
        yielded = running.switch(*self._arguments)
        while not running.dead:
            try:
                sent = yield yielded
            except BaseException as failure:  # noqa: BLE001  # includes CancelledError: it belongs to the coroutine at its await
                yielded = running.throw(running.translate(failure))
            else:
                yielded = running.switch(sent)
        return yielded


def drive(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine from inside a tracer greenlet, handing what it awaits up to the asyncio task."""
    current = getcurrent()
    if not isinstance(current, TracerGreenlet):  # called directly, without a worker around
        return asyncio.run(coroutine)
    sent: Any = None
    failure: BaseException | None = None
    while True:
        try:
            yielded = coroutine.send(sent) if failure is None else coroutine.throw(failure)
        except StopIteration as stop:
            return stop.value
        try:
            sent, failure = current.parent.switch(yielded), None
        except BaseException as thrown:  # noqa: BLE001  # every exception is the coroutine's to handle
            failure = thrown


def as_plain_function(function: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """Make a coroutine function callable from a tracer greenlet; ``is_driven`` marks the result."""

    @functools.wraps(function)
    def run(*arguments: Any, **keywords: Any) -> Any:
        return drive(function(*arguments, **keywords))  # type: ignore[arg-type]

    run.is_driven = True  # type: ignore[attr-defined]
    return run
