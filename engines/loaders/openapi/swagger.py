"""Swagger 2.0 put into the words of OpenAPI 3.0, one operation at a time: only what is loaded has to be sound."""

from collections.abc import Iterator
from typing import Any

from engines.errors import InvalidTool
from engines.loaders.openapi.media_types import FORM, MULTIPART
from engines.loaders.openapi.references import Document
from engines.plain import JSONObject

_JSON = "application/json"
_NEEDED = ("name", "in")
_BYTES = "application/octet-stream"
_NO_PART_OF_THE_SCHEMA = frozenset({"name", "in", "description", "required", "collectionFormat", "allowEmptyValue"})
# How the items of a list are joined: (style, explode).
_COLLECTIONS = {
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "tsv": ("tabDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}


def upgraded_root(root: JSONObject) -> JSONObject:
    """Return the document with OpenAPI's servers and security schemes; what references name stays where it is."""
    definitions = root.get("securityDefinitions")
    schemes = definitions if isinstance(definitions, dict) else {}
    components = {"securitySchemes": {name: _scheme(scheme) for name, scheme in schemes.items()}}
    return {**root, "components": components, "servers": list(_servers(root))}


def upgraded_operation(
    path_item: JSONObject, operation: JSONObject, document: Document
) -> tuple[JSONObject, JSONObject]:
    """Return (path item, operation) with bodies and responses as OpenAPI has them; InvalidTool for what is unsound."""
    parameters: dict[tuple[str, str], JSONObject] = {}
    for holder in (path_item, operation):
        for each in _listed(holder, "parameters"):
            parameter = document.resolved(each)
            if not isinstance(parameter, dict) or not all(isinstance(parameter.get(key), str) for key in _NEEDED):
                raise InvalidTool("parameters: each must be an object with a name and an `in`")
            parameters[parameter["in"], parameter["name"]] = parameter
    consumes = _texts(operation, "consumes") or _texts(document.root, "consumes")
    produces = _texts(operation, "produces") or _texts(document.root, "produces") or [_JSON]
    upgraded: JSONObject = {
        **{key: value for key, value in operation.items() if key not in {"consumes", "produces"}},
        "parameters": [_parameter(each) for each in parameters.values() if each.get("in") not in {"body", "formData"}],
        "responses": {code: _response(each, produces, document) for code, each in _responses(operation)},
    }
    form = [each for each in parameters.values() if each.get("in") == "formData"]
    body = next((each for each in parameters.values() if each.get("in") == "body"), None)
    if form:
        upgraded["requestBody"] = _form(form, consumes)
    elif body is not None:
        content = {kind: {"schema": body.get("schema", {})} for kind in consumes or [_JSON]}
        told = {key: body[key] for key in ("description", "required") if key in body}
        upgraded["requestBody"] = {**told, "content": content}
    return {key: value for key, value in path_item.items() if key != "parameters"}, upgraded


def _servers(root: JSONObject) -> Iterator[JSONObject]:
    host, base_path = root.get("host"), root.get("basePath") or ""
    schemes = [each for each in _texts(root, "schemes") if each in {"http", "https"}]
    if isinstance(host, str) and host:
        scheme = schemes[0] if schemes and "https" not in schemes else "https"
        yield {"url": f"{scheme}://{host}{base_path}"}
    elif base_path:
        yield {"url": base_path}


def _scheme(written: Any) -> Any:
    return (
        {"type": "http", "scheme": "basic"} if isinstance(written, dict) and written.get("type") == "basic" else written
    )


def _parameter(written: JSONObject) -> JSONObject:
    parameter: JSONObject = {key: written[key] for key in ("name", "in", "description", "required") if key in written}
    parameter["schema"] = _schema_of(written)
    if written.get("type") == "array":
        parameter["style"], parameter["explode"] = _collection(written)
    return parameter


def _schema_of(parameter: JSONObject) -> JSONObject:
    schema = {key: value for key, value in parameter.items() if key not in _NO_PART_OF_THE_SCHEMA}
    return {**schema, "type": "string", "format": "binary"} if schema.get("type") == "file" else schema


def _collection(parameter: JSONObject) -> tuple[str, bool]:
    """Return how a list is written; path and header have one style only, which the parameter's place decides."""
    return _COLLECTIONS.get(str(parameter.get("collectionFormat", "csv")), ("form", False))


def _form(fields: list[JSONObject], consumes: list[str]) -> JSONObject:
    has_files = any(each.get("type") == "file" for each in fields)
    kind = MULTIPART if has_files or (MULTIPART in consumes and FORM not in consumes) else FORM
    schema = {
        "type": "object",
        "properties": {each["name"]: {**_schema_of(each), "description": each.get("description")} for each in fields},
        "required": [each["name"] for each in fields if each.get("required") is True],
    }
    encoding = {
        each["name"]: dict(zip(("style", "explode"), _collection(each), strict=True))
        for each in fields
        if each.get("type") == "array"
    }
    return {"content": {kind: {"schema": schema, "encoding": encoding}}}


def _responses(operation: JSONObject) -> Iterator[tuple[str, Any]]:
    responses = operation.get("responses")
    yield from (responses.items() if isinstance(responses, dict) else ())


def _response(written: Any, produces: list[str], document: Document) -> JSONObject:
    response = document.resolved(written)
    schema = response.get("schema") if isinstance(response, dict) else None
    if not isinstance(schema, dict):
        return {}
    if schema.get("type") == "file":
        return {"content": {kind: {} for kind in produces if kind != _JSON} or {_BYTES: {}}}
    return {"content": {kind: {"schema": schema} for kind in produces}}


def _listed(holder: JSONObject, key: str) -> list[Any]:
    written = holder.get(key)
    return written if isinstance(written, list) else []


def _texts(holder: JSONObject, key: str) -> list[str]:
    return [each for each in _listed(holder, key) if isinstance(each, str)]
