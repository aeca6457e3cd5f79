"""One task in flight in the pool: what it was started with, and how it is stopped."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded


@dataclass(frozen=True, slots=True)
class PoolCallbacks:
    """What Celery wants to hear of a task, and its time limits in seconds."""

    accepted: Callable[..., Any] | None
    success: Callable[..., Any] | None
    error: Callable[..., Any] | None
    timed_out: Callable[..., Any] | None
    soft_timeout: float | None
    timeout: float | None


class PoolJob:
    """A task of the pool; also what Celery asks to terminate a revoked one."""

    __slots__ = (
        "__weakref__", "_on_loop", "arguments", "callbacks", "is_over", "soft_timed_out", "target", "task",
        "was_cancelled",
    )  # fmt: skip

    def __init__(
        self,
        target: Callable[..., Any],
        arguments: tuple[Any, ...],
        callbacks: PoolCallbacks,
        on_loop: Callable[..., None],
    ) -> None:
        self.target = target
        self.arguments = arguments
        self.callbacks = callbacks
        self.task: asyncio.Task[None] | None = None
        self.is_over = False
        self.was_cancelled = False
        self.soft_timed_out = False
        self._on_loop = on_loop

    def as_seen_by_the_task(self, failure: BaseException) -> BaseException:
        """Turn the cancellation of a soft time limit into Celery's exception for it."""
        if isinstance(failure, asyncio.CancelledError) and self.soft_timed_out and self.task is not None:
            self.soft_timed_out = False
            self.was_cancelled = False
            self.task.uncancel()
            return SoftTimeLimitExceeded(self.callbacks.soft_timeout)  # type: ignore[no-any-return]
        return failure

    def terminate(self, _signal: object = None) -> None:
        """Cancel the task (Celery calls this from the hub's thread for a revoked one)."""
        self._on_loop(self.cancel)

    def cancel(self) -> None:
        """Cancel the task; loop thread only."""
        if self.task is not None and not self.is_over:
            self.was_cancelled = True
            self.task.cancel()
