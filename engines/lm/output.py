"""What a model's text is worth as a tool's result: pure functions, one verdict per candidate."""

import json
import re
from dataclasses import dataclass
from typing import Any

from engines.plain import JSONObject, text_of
from engines.schemas import compiled, problems
from engines.tool import ErrorType, Tool

NOT_VALID = "failed to generate valid tool result"

_FENCED = re.compile(r"\A\s*```[A-Za-z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_ENVELOPE = "result"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A result."""

    result: Any


@dataclass(frozen=True, slots=True)
class Rejected:
    """No result, and why."""

    error_type: ErrorType
    message: str


def judged(text: str, tool: Tool) -> Accepted | Rejected:
    """Read one candidate: against the output schema if there is one (D22), else as any object, unchanged (D24)."""
    parsed = _parsed(text)
    declared = _declared(tool.output_parameters)
    if parsed is _UNREADABLE:
        return Rejected(ErrorType.unparseable_result, f"{NOT_VALID}: not JSON")
    if isinstance(parsed, dict) and "error" in parsed and "error" not in declared and parsed["error"]:
        return Rejected(ErrorType.execution, text_of(parsed["error"]))  # Rule D25: with a schema or without.
    if tool.output_parameters is not None:
        return _fitted(parsed, tool.output_parameters)
    if not isinstance(parsed, dict) or not parsed:
        return Rejected(ErrorType.unparseable_result, f"{NOT_VALID}: not an object with content")  # Rule D27.
    return Accepted(parsed)


def _fitted(parsed: Any, schema: JSONObject) -> Accepted | Rejected:
    """Take the candidate as far as the schema declares it, or what its `{"result": …}` envelope holds."""
    validator = compiled(schema)
    declared = _declared(schema)
    if parsed == {} and declared:
        return Rejected(ErrorType.unparseable_result, f"{NOT_VALID}: an empty object")
    projected = _projected(parsed, schema)
    problem = problems(validator, projected)
    if not problem:
        return Accepted(projected)
    if isinstance(parsed, dict) and _ENVELOPE in parsed and _ENVELOPE not in declared:
        inner = _projected(parsed[_ENVELOPE], schema)
        if not problems(validator, inner):
            return Accepted(inner)
    return Rejected(ErrorType.schema_violation, f"{NOT_VALID}: {problem}")


def _projected(value: Any, schema: Any) -> Any:
    """Drop what the schema does not declare, at every depth; empty values stay, they may be required (rule D23)."""
    if not isinstance(schema, dict):
        return value
    if isinstance(value, list):
        return [_projected(item, schema.get("items")) for item in value]
    properties = schema.get("properties")
    if not isinstance(value, dict) or not properties:
        return value
    keeps_others = bool(schema.get("additionalProperties")) or "patternProperties" in schema
    return {
        key: _projected(item, properties.get(key)) for key, item in value.items() if keeps_others or key in properties
    }


def _parsed(text: str) -> Any:
    fenced = _FENCED.match(text)  # Models wrap JSON in a code fence even when told not to.
    try:
        return json.loads(fenced[1] if fenced else text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return _UNREADABLE


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _declared(schema: JSONObject | None) -> JSONObject:
    return (schema or {}).get("properties") or {}


_UNREADABLE = object()
