"""An operation's parameters in path, query, header and cookie (rules D50, D52, D54)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from engines.errors import InvalidTool
from engines.loaders.openapi.arguments import Arguments
from engines.loaders.openapi.metadata import Location
from engines.loaders.openapi.references import Document
from engines.loaders.openapi.schemas import Translation
from engines.loaders.openapi.security import SecuritySchemes
from engines.loaders.openapi.texts import MOST_CHARS_OF_A_SCHEMA, description
from engines.nearest import hint
from engines.plain import JSONObject
from engines.rest.header_rules import may_come_from_arguments

_STYLES: Mapping[Location, tuple[str, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
_IN_PATH = re.compile(r"\{([^{}]+)\}")


def merged_parameters(path_item: JSONObject, operation: JSONObject, document: Document) -> list[JSONObject]:
    """Return the parameters of an operation with those of its path; the operation's win (rule D50)."""
    found: dict[tuple[str, str], JSONObject] = {}
    for holder in (path_item, operation):
        for parameter in _parameters_of(holder, document):
            found[parameter["in"], parameter["name"]] = parameter
    return list(found.values())


def add_parameters(
    parameters: list[JSONObject], path: str, arguments: Arguments, translation: Translation, security: SecuritySchemes
) -> None:
    """Add the arguments in the order path, query, header, cookie; credentials and headers that are ours stay out."""
    in_path = list(dict.fromkeys(_IN_PATH.findall(path)))
    described = [each for each in parameters if each["in"] == "path"]
    for name in in_path:
        own = next((each for each in described if each["name"] == name), {"in": "path", "name": name})
        _add(own, "path", arguments, translation)
    for location in ("query", "header", "cookie"):
        for parameter in parameters:
            name = parameter["name"]
            if parameter["in"] != location or security.is_credential(location, name):
                continue
            if location == "header" and (name.lower() == "accept" or not may_come_from_arguments(name)):
                continue  # OpenAPI ignores three of these, and no model says the others (rule S6).
            _add(parameter, location, arguments, translation)


def _parameters_of(holder: JSONObject, document: Document) -> Iterator[JSONObject]:
    written = holder.get("parameters") or ()
    if not isinstance(written, list | tuple):
        raise InvalidTool("parameters: must be a list")
    for index, each in enumerate(written):
        parameter = document.resolved(each)
        if not isinstance(parameter, dict) or not isinstance(parameter.get("name"), str) or not parameter["name"]:
            raise InvalidTool(f"parameters[{index}]: a parameter is an object with a name and an `in`")
        location = parameter.get("in")
        if not isinstance(location, str) or location not in _STYLES:
            message = f"parameter {parameter['name']!r}: no parameters in {location!r}; {hint(str(location), _STYLES)}"
            raise InvalidTool(message)
        yield parameter


def _add(parameter: JSONObject, location: Location, arguments: Arguments, translation: Translation) -> None:
    schema, content_type = _schema_of(parameter)
    translated = translation.schema(schema)
    text = description(parameter.get("description"), most_chars=MOST_CHARS_OF_A_SCHEMA)
    if text:
        translated = {**translated, "description": text}
    if "example" in parameter and "examples" not in translated:
        translated |= translation.schema({"example": parameter["example"]})
    if parameter.get("deprecated") is True:
        translated = {**translated, "deprecated": True}
    style = parameter.get("style")
    arguments.add(
        parameter["name"],
        location,
        translated,
        required=location == "path" or parameter.get("required") is True,
        style=style if style in _STYLES[location] else None,
        explode=parameter.get("explode") if isinstance(parameter.get("explode"), bool) else None,
        allow_reserved=parameter.get("allowReserved") is True,
        content_type=content_type,
    )


def _schema_of(parameter: JSONObject) -> tuple[Any, str | None]:
    """Return a parameter's schema and, where a media type says how its value is written, that type."""
    content = parameter.get("content")
    if isinstance(content, dict) and content:
        media_type, described = next(iter(content.items()))
        return (described.get("schema", {}) if isinstance(described, dict) else {}), media_type
    return parameter.get("schema", {"type": "string"}), None
