"""A tool definition as people write it, read leniently where nothing is lost and strictly where something would be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engines.errors import InvalidTool
from engines.nearest import hint
from engines.plain import JSONObject

# What some providers let a tool say of itself (rule A21); kept as metadata.
_PASSED_ON = ("strict", "input_examples", "cache_control", "defer_loading")
_KNOWN_KEYS = frozenset(
    {"name", "namespace", "description", "parameters", "output_parameters", "metadata", *_PASSED_ON}
)
_STRUCTURE = frozenset(
    {"properties", "required", "additionalProperties", "$ref", "allOf", "anyOf", "oneOf", "$defs", "definitions"}
)


@dataclass(frozen=True, slots=True)
class Definition:
    """The parts of a definition, checked."""

    name: str
    namespace: str | None
    description: str
    parameters: JSONObject
    output_parameters: JSONObject | None
    metadata: JSONObject


def definition_of(written: Mapping[str, Any]) -> Definition:
    """Check a definition's parts: absent parameters become the empty object's schema; InvalidTool otherwise.

    The wrapping of chat completions (`{"type": "function", "function": {…}}`) is taken off.
    """
    if not isinstance(written, Mapping):
        raise InvalidTool(f"a tool definition is an object, got {type(written).__name__}")
    if written.get("type") == "function" and isinstance(written.get("function"), Mapping):
        written = written["function"]
    name = written.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidTool(f"a tool needs a name (text; in YAML put odd ones in quotes), got {name!r}")
    for key in written:
        if key not in _KNOWN_KEYS:
            raise InvalidTool(f"tool {name!r}: unknown key {key!r}; {hint(str(key), _KNOWN_KEYS)}")
    return Definition(
        name=name,
        namespace=_text(written, "namespace", name),
        description=_text(written, "description", name) or "",
        parameters=_parameters(written.get("parameters"), name),
        output_parameters=_object(written, "output_parameters", name) or None,
        metadata=_metadata(written, name),
    )


def _parameters(written: Any, name: str) -> JSONObject:
    if written is None or written == {}:
        return {"type": "object", "properties": {}}
    if not isinstance(written, dict):
        raise InvalidTool(f"tool {name!r}: parameters must be a JSON Schema object, got {type(written).__name__}")
    if "type" not in written:
        if not _STRUCTURE & written.keys():
            raise InvalidTool(
                f"tool {name!r}: parameters is not a JSON Schema of an object (its keys: {', '.join(written)}); "
                "put the parameters under `properties`"
            )
        return {"type": "object", **written}
    if "object" not in (written["type"] if isinstance(written["type"], list) else [written["type"]]):
        raise InvalidTool(f"tool {name!r}: parameters must be of type object, got {written['type']!r}")
    return written


def _metadata(written: Mapping[str, Any], name: str) -> JSONObject:
    metadata = _object(written, "metadata", name) or {}
    passed_on = {key: written[key] for key in _PASSED_ON if written.get(key) is not None}
    return {**metadata, **passed_on} if passed_on else metadata


def _text(written: Mapping[str, Any], key: str, name: str) -> str | None:
    value = written.get(key)
    if value is None or isinstance(value, str):
        return value
    raise InvalidTool(f"tool {name!r}: {key} must be text, got {type(value).__name__}")


def _object(written: Mapping[str, Any], key: str, name: str) -> JSONObject | None:
    value = written.get(key)
    if value is None or isinstance(value, dict):
        return value
    raise InvalidTool(f"tool {name!r}: {key} must be an object, got {type(value).__name__}")
