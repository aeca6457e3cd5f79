"""JSON Schemas, compiled once each; a remote `$ref` is refused, never fetched."""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol

import jsonschema_rs

from engines.errors import InvalidTool
from engines.plain import JSONObject, canonical

_SCHEMAS_KEPT = 8192
_PROBLEMS_TOLD = 5
_PROBLEM_CHARS = 300


class Problem(Protocol):
    """What the validator says about one place of a document."""

    @property
    def message(self) -> str:
        """What is wrong."""

    @property
    def instance_path(self) -> list[str | int]:
        """Where."""


class Validator(Protocol):
    """The part of a compiled schema that is used here."""

    def is_valid(self, instance: Any) -> bool:
        """Whether the document holds."""

    def iter_errors(self, instance: Any) -> Iterator[Problem]:
        """Everything that is wrong with it."""


def compiled(schema: JSONObject) -> Validator:
    """Return the validator of a schema, from the cache when an equal one was seen; InvalidTool when it is none."""
    return _compile(canonical(schema))


def checked_schema(schema: JSONObject, *, of: str) -> None:
    """InvalidTool, naming `of`, when the schema does not compile."""
    try:
        compiled(schema)
    except InvalidTool as error:
        raise InvalidTool(f"{of}: {error}") from error


def problems(validator: Validator, document: Any, *, root: str = "") -> str:
    """Return "path: message" of what is wrong, at most five, joined by "; "; "" when nothing is."""
    try:
        if validator.is_valid(document):
            return ""
        told = [f"{_place(problem, root)}{_shortened(problem.message)}" for problem in validator.iter_errors(document)]
    except ValueError as error:  # Not JSON: the validator cannot take it.
        return str(error)
    more = len(told) - _PROBLEMS_TOLD
    return "; ".join(told[:_PROBLEMS_TOLD]) + (f"; and {more} more" if more > 0 else "")


@lru_cache(maxsize=_SCHEMAS_KEPT)
def _compile(text: str) -> Validator:
    try:
        return jsonschema_rs.validator_for(json.loads(text), retriever=_refused, validate_formats=False)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        where = "".join(f".{step}" for step in getattr(error, "instance_path", ()))
        raise InvalidTool(
            f"not a usable JSON Schema{': ' + where[1:] if where else ''}: {_first_line(error)}"
        ) from error


def _refused(uri: str) -> Any:
    raise ValueError(f"{uri} lies outside the schema and is not fetched; copy it under $defs")


def _place(problem: Problem, root: str) -> str:
    path = root + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in problem.instance_path)
    return f"{path.lstrip('.')}: " if path.lstrip(".") else ""


def _shortened(message: str) -> str:
    return message if len(message) <= _PROBLEM_CHARS else message[:_PROBLEM_CHARS] + "…"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
