"""When to try a server again that does not answer: soon at first, then rarely, and meanwhile nobody waits for it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 30.0
FAILURES_UNTIL_OPEN = 5


@dataclass(slots=True)
class Breaker:
    """Counts failures in a row; pauses double with each. From the fifth on it is open: one call a pause may try."""

    clock: Callable[[], float] = time.monotonic
    failures: int = 0
    cause: str = ""
    _next_try: float = field(default=0.0)

    @property
    def is_open(self) -> bool:
        """Whether calls are to fail at once while the pause lasts."""
        return self.failures >= FAILURES_UNTIL_OPEN

    def pause_seconds(self) -> float:
        """Return how long to wait before the next try; 0 when it may come now."""
        return max(0.0, self._next_try - self.clock()) if self.failures else 0.0

    def trying(self) -> None:
        """Let one try through; while open, the others keep waiting for what it comes to."""
        if self.is_open:
            self._next_try = self.clock() + self._pause()

    def failed(self, cause: str) -> None:
        """Count a failure."""
        self.failures += 1
        self.cause = cause
        self._next_try = self.clock() + self._pause()

    def succeeded(self) -> None:
        """Forget the failures."""
        self.failures = 0

    def _pause(self) -> float:
        return min(FIRST_PAUSE_SECONDS * 2.0 ** min(self.failures - 1, 20), LONGEST_PAUSE_SECONDS)
