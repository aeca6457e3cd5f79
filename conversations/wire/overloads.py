"""Several tools of one name offered as one definition (rule D69): providers want unique names, no `anyOf` on top."""

from collections.abc import Mapping, Sequence
from typing import Any

from conversations.messages import JSONObject
from engines.tool import Tool

_DEFINITIONS = ("$defs", "definitions")


def merged_description(overloads: Sequence[Tool]) -> str:
    """Every description once, then which arguments go together: the merged schema alone cannot say it."""
    told = "\nor: ".join(dict.fromkeys(tool.description for tool in overloads if tool.description))
    needed = list(dict.fromkeys(tuple(tool.parameters.get("required", ())) for tool in overloads))
    if len(needed) == 1:
        return told
    ways = "; or ".join(", ".join(names) or "nothing" for names in needed)
    return f"{told}\nNeeded arguments: {ways}.".strip()


def merged_parameters(overloads: Sequence[Tool]) -> JSONObject:
    """The properties of all, those of one name with different schemas as `anyOf`; required is what all require.

    Whatever fits one of the overloads fits the merged schema. The engine picks the overload by the arguments.
    """
    schemas = [_with_own_definitions(tool.parameters, number) for number, tool in enumerate(overloads)]
    variants: dict[str, list[JSONObject]] = {}
    for schema in schemas:
        for name, variant in schema.get("properties", {}).items():
            known = variants.setdefault(name, [])
            if variant not in known:
                known.append(variant)
    merged: JSONObject = {
        "type": "object",
        "properties": {name: known[0] if len(known) == 1 else {"anyOf": known} for name, known in variants.items()},
        "required": sorted(set.intersection(*(set(schema.get("required", ())) for schema in schemas))),
    }
    if all(schema.get("additionalProperties") is False for schema in schemas):
        merged["additionalProperties"] = False
    for key in _DEFINITIONS:
        definitions = {name: part for schema in schemas for name, part in schema.get(key, {}).items()}
        if definitions:
            merged[key] = definitions
    return merged


def _with_own_definitions(parameters: JSONObject, number: int) -> JSONObject:
    """The schema with its definitions under names of its own, so that those of two overloads stay apart."""
    renamed = {
        f"#/{key}/{name}": f"#/{key}/{name}_{number + 1}" for key in _DEFINITIONS for name in parameters.get(key, {})
    }
    if not renamed or number == 0:
        return parameters
    schema: JSONObject = _redirected(parameters, renamed)
    for key in _DEFINITIONS:
        if key in schema:
            schema[key] = {f"{name}_{number + 1}": part for name, part in schema[key].items()}
    return schema


def _redirected(part: Any, renamed: Mapping[str, str]) -> Any:
    if isinstance(part, list):
        return [_redirected(each, renamed) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        key: _target(value, renamed) if key == "$ref" and isinstance(value, str) else _redirected(value, renamed)
        for key, value in part.items()
    }


def _target(reference: str, renamed: Mapping[str, str]) -> str:
    """A reference to a definition, or to something inside of one."""
    for old, new in renamed.items():
        if reference == old or reference.startswith(f"{old}/"):
            return new + reference.removeprefix(old)
    return reference
