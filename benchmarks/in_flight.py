"""Keeps a number of conversations in flight on one event loop, as a worker does, and takes the CPU they cost."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import uvloop

_Value = TypeVar("_Value")


def on_loop(main: Callable[[], Awaitable[_Value]]) -> _Value:
    """Run on the loop that workers use."""

    async def run() -> _Value:
        return await main()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


async def cpu_seconds_of(one: Callable[[int], Awaitable[object]], *, count: int, in_flight: int) -> float:
    """Run `one` for 0 … count - 1, `in_flight` at a time; the CPU seconds of this process, all its threads."""
    numbers = iter(range(count))

    async def lane() -> None:
        for number in numbers:
            await one(number)

    started = time.process_time()
    async with asyncio.TaskGroup() as group:
        for _ in range(min(in_flight, count)):
            group.create_task(lane())
    return time.process_time() - started
