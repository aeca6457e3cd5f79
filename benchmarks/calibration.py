"""How fast this machine is just now: the CPU-ms of a fixed loop, taken around every figure."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

UNDISTURBED_MS = 26.0
_STEPS = 150_000
_TRIES = 3


def calibration_ms() -> float:
    """Return the CPU-ms of the loop, the median of a few."""
    return statistics.median(_loop_ms() for _ in range(_TRIES))


def _loop_ms() -> float:
    slots: dict[int, str] = {}
    started = time.process_time()
    for number in range(_STEPS):
        slots[number & 1023] = str(number)
    return (time.process_time() - started) * 1000


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured value with the calibration before and after it."""

    value: float
    before_ms: float
    after_ms: float

    @property
    def calibration_ms(self) -> float:
        """Return the machine's speed while the value was taken."""
        return (self.before_ms + self.after_ms) / 2

    @property
    def at_undisturbed(self) -> float:
        """Return the CPU time as it would be where the loop takes 26 ms."""
        return self.value * UNDISTURBED_MS / self.calibration_ms


def sampled(measure: Callable[[], float]) -> Sample:
    """Take one value between two calibrations."""
    before_ms = calibration_ms()
    value = measure()
    return Sample(value, before_ms, calibration_ms())
