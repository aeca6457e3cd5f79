"""A Celery pool that runs every task of the process as a coroutine on one event loop.

kombu's hub keeps the main thread; the event loop has a thread of its own. Celery's tracer runs unpatched, inside a
greenlet of the asyncio task: where it calls a coroutine function, the greenlet hands each awaitable up to the task
(the trick of SQLAlchemy's asyncio extension). Callbacks go back to the hub's thread, in order.
"""

import asyncio
import contextvars
import functools
import inspect
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Protocol

import structlog
import uvloop
from billiard.einfo import ExceptionInfo
from celery import _state
from celery.concurrency.base import BasePool
from celery.exceptions import WorkerLostError
from greenlet import getcurrent
from kombu.asynchronous import get_event_loop

from workers.crossing import Crossing
from workers.greenlets import Traced, as_plain_function
from workers.pool_job import PoolCallbacks, PoolJob

log = structlog.get_logger(__name__)

_PUMP_SECONDS = 0.05
_current_job: contextvars.ContextVar["PoolJob | None"] = contextvars.ContextVar("pool_job", default=None)


class Lifespan(Protocol):
    """What lives as long as the pool: opened on the loop before the first task, closed after the last."""

    drain_seconds: float

    def start_draining(self) -> None:
        """Ask running conversations to stop at their next yield."""

    def hosted(self) -> AbstractAsyncContextManager[None]:
        """Open what the tasks need, and close it."""


class AsyncioPool(BasePool):  # type: ignore[misc]  # Celery is untyped
    """The pool named by ``worker_pool``; ``-c N`` bounds the tasks in flight."""

    signal_safe = False
    is_green = False
    task_join_will_block = True
    body_can_be_buffer = True
    uses_semaphore = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.limit: int = self.limit or 200
        self.jobs: set[PoolJob] = set()
        self.lifespan: Lifespan | None = getattr(self.app, "lifespan", None)
        self.failure: BaseException | None = None
        self.loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        self.total = 0
        self.most = 0
        self._idle = threading.Condition()
        self._ready = threading.Event()
        self._driven_tasks: set[str] = set()
        self._closing: asyncio.Event | None = None

    # --- life, in the hub's thread ----------------------------------------------------------------------------------

    def on_start(self) -> None:
        """Start the loop's thread and wait until the lifespan is open; its failure ends the worker."""
        self.crossing = Crossing(self.loop, get_event_loop())
        self._adopt_tasks()
        self.thread = threading.Thread(target=self._run_loop, name="conversations", daemon=True)
        self.thread.start()
        self._ready.wait()
        if self.failure is not None:
            raise self.failure

    def _adopt_tasks(self) -> None:
        """Let Celery's stacks follow asyncio tasks, and its tracer call our coroutines."""
        _state._task_stack.__ident_func__ = _stack_identity  # noqa: SLF001  # Celery offers no other way
        for name, task in self.app.tasks.items():
            task.request_stack.__ident_func__ = _stack_identity
            attribute = "_orig_run" if hasattr(task, "_orig_run") else "run"
            function = getattr(task, attribute)
            if getattr(function, "is_driven", False):
                self._driven_tasks.add(name)
            elif inspect.iscoroutinefunction(function):
                setattr(task, attribute, as_plain_function(function))
                self._driven_tasks.add(name)

    def on_close(self) -> None:
        """No new tasks come: conversations stop at their next yield."""
        self.crossing.to_loop(self._start_draining)

    def on_stop(self) -> None:
        """Wait for the jobs to stop, up to the drain's time; then cancel them; then close the lifespan."""
        drain_seconds = self.lifespan.drain_seconds if self.lifespan else 5.0
        self.crossing.to_loop(self._start_draining)
        self._pump(time.monotonic() + drain_seconds)
        self._cancel_and_close()

    def on_terminate(self) -> None:
        """Cancel at once (a second signal)."""
        self._cancel_and_close()

    def _cancel_and_close(self) -> None:
        self.crossing.to_loop(self._cancel_all)
        self._pump(time.monotonic() + 10.0)
        if self.thread.is_alive() and self._closing is not None:
            self.crossing.to_loop(self._closing.set)
            while self.thread.is_alive():
                self.thread.join(_PUMP_SECONDS)
                self.crossing.deliver()
        self.crossing.deliver()
        if self.failure is not None:
            log.error("the worker did not close cleanly", exc_info=self.failure)

    def _cancel_all(self) -> None:
        for job in list(self.jobs):
            job.cancel()

    def _pump(self, until: float) -> None:
        """Deliver callbacks while jobs end."""
        while self.jobs and time.monotonic() < until:
            with self._idle:
                self._idle.wait(_PUMP_SECONDS)
            self.crossing.deliver()
        self.crossing.deliver()

    def terminate_job(self, _pid: int, _signal: object = None) -> None:
        """Do nothing: every job has this process's pid; Celery then asks the job itself."""

    def restart(self) -> None:
        """Refuse: a loop is not restarted under its conversations."""
        raise NotImplementedError("the asyncio pool is restarted by restarting the worker process")

    # --- the loop's thread ------------------------------------------------------------------------------------------

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._live())
        except BaseException as failure:  # noqa: BLE001  # reported by the hub's thread, which owns the process
            self.failure = failure
        finally:
            self._ready.set()
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    async def _live(self) -> None:
        self._closing = asyncio.Event()
        async with AsyncExitStack() as stack:
            if self.lifespan is not None:
                await stack.enter_async_context(self.lifespan.hosted())
            self._ready.set()
            await self._closing.wait()

    def _start_draining(self) -> None:
        if self.lifespan is not None:
            self.lifespan.start_draining()

    # --- one job ----------------------------------------------------------------------------------------------------

    def on_apply(  # noqa: PLR0917  # Celery's signature
        self,
        target: Callable[..., Any],
        args: Any = None,
        kwargs: Any = None,
        callback: Any = None,
        accept_callback: Any = None,
        error_callback: Any = None,
        timeout: float | None = None,
        soft_timeout: float | None = None,
        timeout_callback: Any = None,
        **_: Any,
    ) -> PoolJob:
        """Start one task (hub's thread)."""
        callbacks = PoolCallbacks(
            accepted=accept_callback,
            success=callback,
            error=error_callback,
            timed_out=timeout_callback,
            soft_timeout=soft_timeout or self.options.get("soft_timeout"),
            timeout=timeout or self.options.get("timeout"),
        )
        job = PoolJob(functools.partial(target, **(kwargs or {})), tuple(args or ()), callbacks, self.crossing.to_loop)
        self.jobs.add(job)
        self.crossing.to_loop(self._launch, job)
        return job

    def _launch(self, job: PoolJob) -> None:
        context = contextvars.Context()
        context.run(_current_job.set, job)
        self.most = max(self.most, len(self.jobs))
        job.task = self.loop.create_task(self._run(job), context=context)

    async def _run(self, job: PoolJob) -> None:
        self.crossing.to_hub(job.callbacks.accepted, os.getpid(), time.monotonic())
        timers = self._set_time_limits(job)
        outcome: tuple[Any, ...] = ()
        try:
            if job.arguments and job.arguments[0] in self._driven_tasks:
                answer = await Traced(job.target, job.as_seen_by_the_task, *job.arguments)
            else:
                answer = await asyncio.to_thread(job.target, *job.arguments)
            outcome = (job.callbacks.success, answer)
        except asyncio.CancelledError as failure:
            if not job.was_cancelled:  # else terminated, timed out or stopped: whoever cancelled reports it
                outcome = (job.callbacks.error, _lost(failure))  # unreported, it would keep its slot for ever
        except Exception:  # noqa: BLE001  # one job is fenced from the others; Celery reports it
            outcome = (job.callbacks.error, ExceptionInfo())
        except BaseException as failure:  # noqa: BLE001  # SystemExit of a task must not end every conversation
            outcome = (job.callbacks.error, _lost(failure))
        finally:
            for timer in timers:
                timer.cancel()
            if outcome and not job.is_over:
                self.crossing.to_hub(*outcome)
            self._forget(job)

    def _set_time_limits(self, job: PoolJob) -> list[asyncio.TimerHandle]:
        limits = ((job.callbacks.soft_timeout, self._soft_limit), (job.callbacks.timeout, self._hard_limit))
        return [self.loop.call_later(seconds, act, job) for seconds, act in limits if seconds]

    def _soft_limit(self, job: PoolJob) -> None:
        if not job.is_over:
            self.crossing.to_hub(job.callbacks.timed_out, True, job.callbacks.soft_timeout)
            job.soft_timed_out = True
            job.cancel()

    def _hard_limit(self, job: PoolJob) -> None:
        if not job.is_over:
            self.crossing.to_hub(job.callbacks.timed_out, False, job.callbacks.timeout)
            job.cancel()
            job.is_over = True

    def _forget(self, job: PoolJob) -> None:
        job.is_over = True
        self.jobs.discard(job)
        self.total += 1
        if not self.jobs:
            with self._idle:
                self._idle.notify_all()

    def grow(self, n: int = 1) -> None:
        """Allow more tasks in flight (Celery's ``pool_grow``)."""
        self.limit += n

    def shrink(self, n: int = 1) -> None:
        """Allow fewer tasks in flight; those running go on."""
        self.limit = max(1, self.limit - n)

    def _get_info(self) -> dict[str, Any]:
        return {
            **super()._get_info(),
            "processes": [os.getpid()],
            "running": len(self.jobs),
            "most-running": self.most,
            "total": self.total,
            "loop": type(self.loop).__module__,
        }


def _lost(failure: BaseException) -> ExceptionInfo:
    """Make of an exception that means more than a failed task one that does not."""
    try:
        raise WorkerLostError(repr(failure)) from failure
    except WorkerLostError:
        return ExceptionInfo()


def _stack_identity() -> object:
    return _current_job.get() or getcurrent()
