"""The wall time that one conversation may take in one attempt."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

_Value = TypeVar("_Value")


class TimeBudget:
    """Starts when told to; None means without end."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._deadline: float | None = None

    def start(self) -> None:
        """The time runs from now on, by the clock of the running event loop."""
        if self._seconds is not None:
            self._deadline = asyncio.get_running_loop().time() + self._seconds

    @property
    def is_used_up(self) -> bool:
        """Whether nothing more should be begun."""
        return self._deadline is not None and asyncio.get_running_loop().time() >= self._deadline

    async def within(self, awaitable: Awaitable[_Value]) -> _Value | None:
        """What is awaited; None when it was cancelled because the time ran out first."""
        if self._deadline is None:
            return await awaitable
        timeout = asyncio.timeout_at(self._deadline)
        try:
            async with timeout:
                return await awaitable
        except TimeoutError:
            if timeout.expired():
                return None
            raise
