"""Values that fit a JSON Schema, as a model would make them up: plain ones, the same every time."""

from typing import Any

from engines.schemas import compiled

_MOST_LEVELS = 6
_TEXTS = {
    "date": "2024-05-01",
    "date-time": "2024-05-01T12:00:00Z",
    "time": "12:00:00Z",
    "email": "ada@example.com",
    "uuid": "0a1b2c3d-4e5f-4a7b-8c9d-0e1f2a3b4c5d",
    "uri": "https://example.com/a",
    "url": "https://example.com/a",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.com",
    "byte": "aGVsbG8=",
}


def arguments_for(parameters: dict[str, Any], *, with_optional: bool) -> dict[str, Any]:
    """Return arguments that fit a tool's parameters: all of them, or only those that are required."""
    wanted = parameters.get("required", [])
    made = {
        name: sample(schema, parameters)
        for name, schema in parameters["properties"].items()
        if with_optional or name in wanted
    }
    assert compiled(parameters).is_valid(made), (made, parameters)
    return made


def sample(schema: Any, root: dict[str, Any], level: int = 0) -> Any:
    """Return one value; optional properties end where schemas nest too deeply."""
    if not isinstance(schema, dict):
        return "any"
    if isinstance(schema.get("$ref"), str):
        return sample(root["$defs"][schema["$ref"].rpartition("/")[2]], root, level + 1)
    for key in ("const", "default"):
        if key in schema and compiled({**schema, "$defs": root.get("$defs", {})}).is_valid(schema[key]):
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("oneOf", "anyOf"):
        if schema.get(key):
            rest = {name: value for name, value in schema.items() if name != key}
            return _merged(rest, sample(schema[key][0], root, level + 1), root, level)
    if schema.get("allOf"):
        rest = {name: value for name, value in schema.items() if name != "allOf"}
        value = None
        for part in schema["allOf"]:
            value = _merged(part, value, root, level)
        return _merged(rest, value, root, level)
    return _plain(schema, root, level)


def _merged(schema: dict[str, Any], value: Any, root: dict[str, Any], level: int) -> Any:
    if isinstance(value, dict) and (schema.get("type", "object") == "object" or "$ref" in schema):
        more = sample({"type": "object", **schema} if "$ref" not in schema else schema, root, level + 1)
        return {**value, **more} if isinstance(more, dict) else value
    if value is None:
        return sample(schema, root, level + 1)
    return value


def _plain(schema: dict[str, Any], root: dict[str, Any], level: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    match kind:
        case "object":
            required = schema.get("required", ())
            return {
                name: sample(part, root, level + 1)
                for name, part in schema.get("properties", {}).items()
                if name in required or level < _MOST_LEVELS
            }
        case "array":
            if level >= _MOST_LEVELS and not schema.get("minItems"):
                return []
            if "prefixItems" in schema:
                return [sample(part, root, level + 1) for part in schema["prefixItems"]]
            return [sample(schema.get("items", {}), root, level + 1)] * schema.get("minItems", 1)
        case "integer" | "number":
            return _number(schema)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return _text(schema)


def _number(schema: dict[str, Any]) -> Any:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + (1 if "exclusiveMinimum" in schema else 0))
    value = max(low, min(7, schema.get("maximum", 7)))
    step = schema.get("multipleOf")
    return value if step is None else -(-value // step) * step


def _text(schema: dict[str, Any]) -> str:
    if schema.get("contentEncoding") == "base64":
        return "aGVsbG8="
    for example in () if "format" in schema else schema.get("examples", ()):  # The validator checks no formats.
        if isinstance(example, str) and compiled(schema).is_valid(example):
            return example
    text = _TEXTS.get(schema.get("format", ""), "some text")
    text = text.ljust(schema.get("minLength", 0), "x")
    return text[: schema["maxLength"]] if "maxLength" in schema else text
