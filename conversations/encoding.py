"""Encodes JSON for histories and checkpoints: orjson, with a slow path for values that orjson refuses."""

import math
from typing import Any

import orjson

DEEPEST_LEVEL = 200  # orjson refuses more than 254 levels
_LARGEST_INTEGER = 2**64 - 1
_SMALLEST_INTEGER = -(2**63)


def encode_json(value: Any) -> bytes:
    """`value` as JSON; what orjson refuses (half surrogates, huge integers, foreign objects) is replaced."""
    try:
        # A copy: orjson leaves 4 KB behind each short text, and a conversation keeps some fifteen of them in flight.
        return bytes(memoryview(orjson.dumps(value)))
    except TypeError:  # orjson.JSONEncodeError is one
        return orjson.dumps(_representable(value, 0))


def _representable(value: Any, level: int) -> Any:
    if level > DEEPEST_LEVEL:
        return "(nested too deeply)"
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case bool() | None | orjson.Fragment():
            return value
        case int():
            return int(value) if _SMALLEST_INTEGER <= value <= _LARGEST_INTEGER else str(value)
        case float():
            return float(value) if math.isfinite(value) else None
        case dict():
            return {_representable(str(key), level): _representable(item, level + 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_representable(item, level + 1) for item in value]
        case _:
            return _representable(str(value), level)
