"""What the recipe engine needs from above: something that holds a whole conversation (this floor owns the shape)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from engines.plain import JSONObject
from engines.tool import ErrorType


@dataclass(frozen=True, slots=True)
class Brief:
    """One conversation to hold: `prompt` is a template over the call's arguments.

    `response_format` is what its result must keep to, and `is_result` says whether a text does; None: any text will do.
    `seed` is the call's, the same in every attempt; `session_id` names the call's session on the engines.
    """

    prompt: str
    arguments: JSONObject
    seed: int
    session_id: str
    auxdata: Mapping[str, Any] = field(default_factory=dict)
    response_format: JSONObject | None = None
    is_result: Callable[[str], bool] | None = None


@dataclass(frozen=True, slots=True)
class Conversed:
    """How it ended: with its last text, or with an error; what it used and said until then."""

    text: str = ""
    error: str | None = None
    error_type: ErrorType = ErrorType.execution
    usage: Mapping[str, int] = field(default_factory=dict)
    messages: list[JSONObject] = field(default_factory=list)


class Converse(Protocol):
    """A pinned recipe, ready to hold conversations, any number at once between `open` and `close`."""

    async def open(self) -> None:
        """Take what all its conversations share."""

    async def close(self) -> None:
        """Give it back."""

    async def __call__(self, brief: Brief) -> Conversed:
        """Hold one conversation; nothing of it is open afterwards."""


ConverseFor = Callable[[JSONObject], Converse]
"""Makes a Converse of a recipe in its stored form; raises what the floor above raises for one that cannot be used."""
