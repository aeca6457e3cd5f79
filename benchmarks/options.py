"""What the command line of the benchmarks asks for."""

from dataclasses import dataclass
from typing import Literal

StoreKind = Literal["s3", "folder"]


@dataclass(frozen=True, slots=True)
class Options:
    """How large and how often; None leaves a size to the benchmark."""

    rounds: int = 3
    jobs: int | None = None
    in_flight: int = 500
    store: StoreKind = "s3"
    by_hand: int | None = None
