"""Plain JSON values: their copies, their canonical text, and what to make of a value that is none."""

import json
from typing import Any, cast

import orjson

JSONObject = dict[str, Any]

_SCALARS = (str, int, float, bool, type(None))


def copied(value: Any) -> Any:
    """Return a deep copy of a JSON value (quicker than `copy.deepcopy`, and small values are most of them)."""
    if isinstance(value, dict):
        return {key: item if isinstance(item, _SCALARS) else copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [item if isinstance(item, _SCALARS) else copied(item) for item in value]
    return value


def as_json(value: Any) -> Any:
    """Return the value as JSON of its own: dataclasses, pydantic models, dates, enums, sets and tuples become plain.

    TypeError, naming the type, for what has no JSON form.
    """
    if value is None or type(value) in {str, bool}:
        return value
    try:
        return orjson.loads(orjson.dumps(value, default=_unfolded, option=orjson.OPT_NON_STR_KEYS))
    except orjson.JSONEncodeError:
        return _as_json_slowly(value)


def text_of(value: Any) -> str:
    """Return a result as the text that a model reads: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else compact(value)


def compact(value: Any) -> str:
    """Return the value's JSON text, keys in the order they stand."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # An integer over 64 bits or half a surrogate pair.
        return json.dumps(value, separators=(",", ":"))


def canonical(value: Any) -> str:
    """Return the value's JSON text with sorted keys: equal values, equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _as_json_slowly(value: Any) -> Any:
    """Take the value through the standard encoder, which knows integers of any size."""
    try:
        return json.loads(json.dumps(value, default=_unfolded))
    except (ValueError, RecursionError) as error:
        raise TypeError(str(error)) from error


def _unfolded(value: Any) -> Any:
    """Return something the encoder knows for a value it does not know."""
    if hasattr(value, "model_dump"):
        return cast("Any", value).model_dump(mode="json")
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    raise TypeError(f"{type(value).__name__} has no JSON form")
