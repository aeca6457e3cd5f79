"""What every kind of sampler is: from the tools of a job to a draw, which a seed makes concrete."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from engines.configuration import SampleSettings
from engines.tool import Tool

Draw = Callable[[int], list[Tool]]
"""From a job's seed to exactly `k` different tools: the same seed, the same tools, on any machine; SamplingError."""

Index = Mapping[str, Sequence[Sequence[Any]]]
"""What an enrichment found: from a tool's qualified name to `[other's name, score, …]` of each that it leads to."""

Prepare = Callable[[Sequence[Tool], SampleSettings, Index], Draw]
"""Works out once, for these tools and what is known of them, what all draws have in common; keeps no state."""


@dataclass(frozen=True, slots=True)
class SamplerKind:
    """One row of the table of samplers."""

    prepare: Prepare
    index: tuple[str, ...] = ()
    """Where its index lies in the registry's artifacts: the artifact's key, then the keys inside it."""

    @property
    def required_artifacts(self) -> tuple[str, ...]:
        """The artifacts without which it cannot draw (rule D80)."""
        return self.index[:1]

    def index_in(self, artifacts: Mapping[str, Any]) -> Index:
        """Return its index, empty for a sampler that needs none."""
        found: Any = artifacts if self.index else {}
        for key in self.index:
            found = found[key]
        return cast("Index", found)
