"""What every registry entry says, and what a loader is given besides."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from engines.errors import Place


class Entry(BaseModel):
    """The keys all kinds of entries share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str
    namespace: str | None = Field(default=None, min_length=1)
    engine: str | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where an entry stands: its place in the tools block, the recipe's folder, the environment of `submit`."""

    at: Place
    folder: Path
    environment: Mapping[str, str]
