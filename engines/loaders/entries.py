"""What every registry entry says, and what a loader is given besides."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from engines.errors import Place
from engines.plain import JSONObject


class Entry(BaseModel):
    """The keys all kinds of entries share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str
    namespace: str | None = Field(default=None, min_length=1)
    engine: str | None = None


Resolve = Callable[[JSONObject, Place], JSONObject]


def as_written(entry: JSONObject, _at: Place) -> JSONObject:
    """Leave an entry as it is: it holds no references, or nobody can resolve them here."""
    return entry


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where an entry stands: its place in the tools block, the recipe's folder, the environment of `submit`."""

    at: Place
    folder: Path
    environment: Mapping[str, str]
    resolve: Resolve = as_written
    """Puts the values of `${VAR}` and `file:` references into an entry; what it returns is used and never stored."""
