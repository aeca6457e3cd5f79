"""Threads for blocking functions."""

import asyncio
import contextvars
import subprocess
import sys
import threading
from functools import partial

import pytest

from engines.local.threads import Threads

VARIABLE = contextvars.ContextVar("VARIABLE", default="unset")


async def test_a_function_runs_in_a_thread_with_the_callers_context() -> None:
    threads = Threads(2, name="test")
    VARIABLE.set("callers")
    name, value = await threads.run(lambda: (threading.current_thread().name, VARIABLE.get()))
    assert (name, value) == ("test-1", "callers")
    threads.close()


async def test_there_are_never_more_threads_than_allowed() -> None:
    threads = Threads(3, name="few")
    names = await asyncio.gather(*(threads.run(lambda: threading.current_thread().name) for _ in range(50)))
    assert set(names) <= {"few-1", "few-2", "few-3"}
    threads.close()


async def test_as_many_run_at_once_as_there_are_threads() -> None:
    threads = Threads(3, name="test")
    barrier = threading.Barrier(3)
    await asyncio.gather(*(threads.run(partial(barrier.wait, 10)) for _ in range(3)))
    threads.close()


@pytest.mark.parametrize("raised", [ValueError("x"), SystemExit(1), asyncio.CancelledError()])
async def test_what_a_function_raises_is_raised_where_it_is_awaited(raised: BaseException) -> None:
    def function() -> None:
        raise raised

    threads = Threads(1, name="test")
    with pytest.raises(type(raised)):
        await threads.run(function)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await threads.run(partial(next, iter(())))
    assert await threads.run(lambda: "still there") == "still there"
    threads.close()


async def test_a_cancelled_caller_is_free_at_once_and_the_thread_goes_on() -> None:
    threads, started, gate = Threads(1, name="test"), threading.Event(), threading.Event()

    def function() -> None:
        started.set()
        gate.wait(10)

    caller = asyncio.create_task(threads.run(function))
    ran: list[str] = []
    queued = asyncio.create_task(threads.run(lambda: ran.append("though its caller was cancelled before it began")))
    while not started.is_set():
        await asyncio.sleep(0)
    for task in (caller, queued):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    gate.set()
    assert await threads.run(lambda: "next") == "next"
    assert ran == []
    threads.close()


def test_a_function_that_hangs_does_not_keep_the_process() -> None:
    code = (
        "import asyncio, threading\n"
        "from engines.local.threads import Threads\n"
        "async def main():\n"
        "    hanging = asyncio.create_task(Threads(1, name='test').run(threading.Event().wait))\n"
        "    await asyncio.sleep(0)\n"
        "    hanging.cancel()\n"
        "asyncio.run(main())\n"
        "print('ended')"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout == "ended\n"
