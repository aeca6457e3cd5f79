"""What is compared when tools are: the text of a whole tool, and of one parameter that goes in or comes out."""

from collections.abc import Iterator
from typing import Any

from engines.plain import JSONObject
from engines.tool import Tool
from engines.words import words

_SAY_LITTLE = frozenset(
    {"id", "name", "value", "key", "code", "type", "status", "number", "data", "text", "title", "url", "date", "time"}
)
_MOST_REFERENCES = 8


def tool_text(tool: Tool) -> str:
    """Return name, description and parameters, with the output's when they are known."""
    name = " ".join(words(tool.name))
    parts = [f"{name}. {tool.description}"]
    for schema in (tool.parameters, tool.output_parameters or {}):
        parts += [f"{' '.join(words(key))}: {_description(part)}" for key, part in properties_of(schema)]
    return "\n".join(parts)


def parameter_text(tool: Tool, name: str, schema: Any) -> str:
    """Return a parameter's name, twice because it says most, and its description.

    A name that says little by itself (`id`) takes what the tool is about: `order id` for that of `get_order`.
    """
    own = words(name) or [name]
    if set(own) <= _SAY_LITTLE:
        own = [*(word for word in words(tool.name)[1:] if word not in own), *own]
    spelled = " ".join(own)
    return f"{spelled}, {spelled}: {_description(schema)}"


def properties_of(schema: JSONObject) -> Iterator[tuple[str, Any]]:
    """Give each property of an object's schema, with what its local `$ref` names; those of `allOf` too."""
    own = _followed(schema, schema)
    for part in (own, *(_followed(part, schema) for part in _listed(own, "allOf"))):
        properties = part.get("properties") if isinstance(part, dict) else None
        if isinstance(properties, dict):
            for name, each in properties.items():
                yield name, _followed(each, schema)


def _followed(part: Any, root: JSONObject) -> Any:
    """Return what a part's local `$ref` names in the end, else the part itself."""
    for _ in range(_MOST_REFERENCES):
        reference = part.get("$ref") if isinstance(part, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#"):
            return part
        found: Any = root
        for step in filter(None, reference[1:].split("/")):
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, dict) else None
        if found is None:
            return part
        part = found
    return part


def _listed(schema: Any, key: str) -> list[Any]:
    parts = schema.get(key) if isinstance(schema, dict) else None
    return parts if isinstance(parts, list) else []


def _description(schema: Any) -> str:
    written = schema.get("description") if isinstance(schema, dict) else None
    return written if isinstance(written, str) else ""
