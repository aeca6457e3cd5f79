"""A module of tools as a user would write it for the python loader: types, docstrings, a context."""

import datetime as dt
import enum
from dataclasses import dataclass
from os import system  # noqa: F401  # what a module imports is not its tool
from typing import Annotated, Any, Literal, TypedDict

from pydantic import BaseModel, Field

from engines.local.context import Context


class Unit(enum.Enum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


class Place(BaseModel):
    lat: float = Field(ge=-90, le=90)
    lon: float


@dataclass
class Tag:
    name: str


class Reading(TypedDict):
    degrees: float
    unit: str


def measure(
    city: str, day: dt.date, unit: Unit = Unit.CELSIUS, place: Place | None = None, tags: tuple[Tag, ...] = ()
) -> Reading:
    """Measures the temperature.

    Args:
        city: Where.
        day: When.
    """
    assert isinstance(day, dt.date)
    assert isinstance(unit, Unit)
    assert place is None or isinstance(place, Place)
    assert all(isinstance(tag, Tag) for tag in tags)
    return {"degrees": len(city) + day.day, "unit": unit.value}


async def note(
    text: Annotated[str, Field(max_length=20, description="What to note.")],
    context: Context,
    kind: Literal["idea", "task"] = "idea",
) -> dict[str, Any]:
    """Notes something."""
    context.namespace.setdefault("notes", []).append(text)
    return {"kind": kind, "notes": context.namespace["notes"]}


def anything(first: int, **others: Any) -> dict[str, Any]:
    return {"first": first, **others}


def open_desk(session_id: str, context: Context) -> None:
    context.namespace["notes"] = ["opened"]


def _private() -> str:
    return "private"
