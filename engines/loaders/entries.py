"""What every registry entry says, and what a loader is given besides."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from engines.errors import ConfigurationInvalid, Place
from engines.plain import JSONObject


class Entry(BaseModel):
    """The keys all kinds of entries share.

    An `optional` entry that cannot be loaded, or a tool of it, is left out with a warning (rule U2). With
    `on_duplicate: skip` its tools give way to those of other entries that have their names (rule U1).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str
    namespace: str | None = Field(default=None, min_length=1)
    engine: str | None = None
    optional: bool = False
    on_duplicate: Literal["error", "skip"] = "error"


Resolve = Callable[[JSONObject, Place], JSONObject]


def as_written(entry: JSONObject, _at: Place) -> JSONObject:
    """Leave an entry as it is: it holds no references, or nobody can resolve them here."""
    return entry


PinRecipe = Callable[[Path, str, JSONObject, Place], JSONObject]
"""Reads, checks and pins the recipe at a path, whose conversations begin with a prompt (a template) filled in with
arguments like the given ones; its stored form. ConfigurationInvalid stands at, or below, the place."""


def no_recipes(path: Path, _prompt: str, _arguments: JSONObject, at: Place) -> JSONObject:
    """Refuse: who loads tools alone knows nothing of recipes."""
    raise ConfigurationInvalid(f"the recipe {path} cannot be read here", at=(*at, "path"))


LeaveOut = Callable[[ConfigurationInvalid], None]


def refuse(error: ConfigurationInvalid) -> None:
    """Let one bad definition stop the whole load."""
    raise error


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where an entry stands: its place in the tools block, the recipe's folder, the environment of `submit`."""

    at: Place
    folder: Path
    environment: Mapping[str, str]
    resolve: Resolve = as_written
    """Puts the values of `${VAR}` and `file:` references into an entry; what it returns is used and never stored."""
    leave_out: LeaveOut = refuse
    """Told of one definition that cannot be used: raises, or, for an optional entry, notes it and the rest loads."""
    pin_recipe: PinRecipe = no_recipes
    """Makes the pinned form of another recipe, which is a tool of this one."""
