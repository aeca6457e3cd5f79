"""A figure: what was measured, the limit it is held against, and how it is printed."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from benchmarks.calibration import Sample

_CALIBRATIONS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Figure:
    """`held` is what the limit is compared with: CPU times at calibration 26, everything else as measured."""

    name: str
    value: float
    unit: str
    held: float
    limit: float | None = None
    is_least: bool = False
    calibration_ms: tuple[float, ...] = ()
    spread: tuple[float, float] | None = None
    note: str = ""

    @classmethod
    def of_cpu(cls, name: str, samples: Sequence[Sample], limit: float | None = None, *, note: str = "") -> Self:
        """CPU-ms of one thing, the median of its samples."""
        values = [sample.value for sample in samples]
        return cls(
            name=name,
            value=statistics.median(values),
            unit="CPU-ms",
            held=statistics.median(sample.at_undisturbed for sample in samples),
            limit=limit,
            calibration_ms=tuple(sample.calibration_ms for sample in samples),
            spread=(min(values), max(values)),
            note=note,
        )

    @classmethod
    def of_pairs(cls, name: str, ours: Sequence[Sample], theirs: Sequence[Sample], limit: float | None = None) -> Self:
        """The median of the ratios of samples that were taken in turn."""
        ratios = [mine.value / other.value for mine, other in zip(ours, theirs, strict=True)]
        median = statistics.median(ratios)
        return cls(name, median, "times", median, limit, spread=(min(ratios), max(ratios)))

    @classmethod
    def plain(
        cls,
        name: str,
        values: Sequence[float],
        unit: str,
        limit: float | None = None,
        *,
        is_least: bool = False,
        note: str = "",
    ) -> Self:
        """Bytes, seconds and counts: the median of what was seen."""
        median = statistics.median(values)
        return cls(name, median, unit, median, limit, is_least, spread=(min(values), max(values)), note=note)

    @property
    def ratio(self) -> float | None:
        """How far the limit is used up: at most 1 is within it."""
        if self.limit is None:
            return None
        return self.limit / self.held if self.is_least else self.held / self.limit

    @property
    def is_within(self) -> bool:
        """Whether the limit holds; a figure without one always does."""
        return self.ratio is None or self.ratio <= 1

    def line(self) -> str:
        """One line for people."""
        parts = [f"{self.name:<58} {_short(self.value):>9} {self.unit:<12}"]
        if self.spread is not None and self.spread[0] != self.spread[1]:
            parts.append(f"[{_short(self.spread[0])} .. {_short(self.spread[1])}]")
        if self.calibration_ms:
            parts.append(f"calibration {_shown(self.calibration_ms)}, at 26: {_short(self.held)}")
        if self.limit is not None and self.ratio is not None:
            sign = ">=" if self.is_least else "<="
            parts.append(f"limit {sign} {_short(self.limit)}: {'ok' if self.is_within else 'OVER'} ({self.ratio:.2f})")
        return "  ".join([*parts, self.note]).rstrip()

    def to_dict(self) -> dict[str, Any]:
        """Return the line of the history."""
        shown = {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "held": self.held,
            "limit": self.limit,
            "ratio": self.ratio,
            "spread": self.spread,
            "calibration_ms": self.calibration_ms or None,
            "note": self.note or None,
        }
        return {key: _rounded(value) for key, value in shown.items() if value is not None}


def _shown(calibrations: Sequence[float]) -> str:
    if len(calibrations) <= _CALIBRATIONS_SHOWN:
        return "/".join(f"{each:.0f}" for each in calibrations)
    return f"{min(calibrations):.0f}..{max(calibrations):.0f}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _rounded(value: Any) -> Any:
    match value:
        case float():
            return float(f"{value:.5g}")
        case tuple():
            return [_rounded(each) for each in value]
        case _:
            return value
