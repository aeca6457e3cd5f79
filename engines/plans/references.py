"""Nested arguments: `"$1.order.id"` stands for what an earlier call came to (rule D86)."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from engines.errors import EngineError
from engines.tool import ToolCall

_REFERENCE = re.compile(r"\$(\w+)((?:\.[\w-]+|\[\d+\])*)")
_STEP = re.compile(r"\.([\w-]+)|\[(\d+)\]")
_MONEY = re.compile(r"\$\d+(\.\d+)?")

Place = tuple[str | int, ...]


class UnresolvedReference(EngineError, ValueError):
    """A reference names a result, or a part of one, that is not there; the conversation is dropped."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Where it stands in the arguments, the id of the call that is meant (with its `$`), the way into its result."""

    at: Place
    call_id: str
    steps: tuple[str, ...]
    text: str

    @classmethod
    def read(cls, text: str, ids: Collection[str], at: Place = ()) -> Self | None:
        """Read a text that is a reference and nothing else; None for any other.

        `$5` and `$5.00` are amounts of money unless a call has that id.
        """
        match = _REFERENCE.fullmatch(text)
        if match is None or (f"${match[1]}" not in ids and _MONEY.fullmatch(text)):
            return None
        steps = tuple(step[1] or step[2] for step in _STEP.finditer(match[2]))
        return cls(at, f"${match[1]}", steps, text)

    def value_in(self, results: Mapping[str, Any]) -> Any:
        """Return what is meant, of its own type; UnresolvedReference when it is not there."""
        if self.call_id not in results:
            raise UnresolvedReference(f"{self.text!r}: the call {self.call_id!r} has no result")
        value = results[self.call_id]
        for step in self.steps:
            is_position = isinstance(value, list) and step.isdecimal() and int(step) < len(value)
            if is_position:
                value = value[int(step)]
            elif isinstance(value, dict) and step in value:
                value = value[step]
            else:
                raise UnresolvedReference(f"{self.text!r}: the result of {self.call_id!r} has no {step!r} there")
        return value


def reference_id(call: ToolCall) -> str:
    """Return how later calls refer to this one: `$` and its id."""
    return f"${(call.call_id or '').removeprefix('$')}"


def references_in(arguments: Any, ids: Collection[str], at: Place = ()) -> Iterator[Reference]:
    """Give every reference in a call's arguments."""
    match arguments:
        case str():
            if (found := Reference.read(arguments, ids, at)) is not None:
                yield found
        case dict():
            for key, value in arguments.items():
                yield from references_in(value, ids, (*at, key))
        case list():
            for position, value in enumerate(arguments):
                yield from references_in(value, ids, (*at, position))
        case _:
            return


def resolved(arguments: Any, results: Mapping[str, Any], ids: Collection[str]) -> Any:
    """Return the arguments with each reference replaced by what it means; UnresolvedReference where that is not there.

    `ids` are those of all the plan's calls: a reference to one without a result is none the less a reference.
    """
    match arguments:
        case str():
            found = Reference.read(arguments, ids)
            return arguments if found is None else found.value_in(results)
        case dict():
            return {key: resolved(value, results, ids) for key, value in arguments.items()}
        case list():
            return [resolved(value, results, ids) for value in arguments]
        case _:
            return arguments
