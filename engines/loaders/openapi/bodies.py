"""A request's body as arguments: the fields of an object one by one, any other body whole (rule D52)."""

from typing import Any, Final

from engines.errors import InvalidTool
from engines.loaders.openapi.arguments import Arguments
from engines.loaders.openapi.fields import Fields, fields_of
from engines.loaders.openapi.media_types import FORM, best, is_json, is_text, spelled
from engines.loaders.openapi.metadata import RestBody
from engines.loaders.openapi.references import Document
from engines.loaders.openapi.schemas import Translation
from engines.loaders.openapi.texts import MOST_CHARS_OF_A_SCHEMA, description
from engines.plain import JSONObject

_BODY: Final = "body"
_BASE64_NOTE = "base64"


def add_body(
    operation: JSONObject, method: str, arguments: Arguments, translation: Translation, document: Document
) -> RestBody | None:
    """Add the arguments of an operation's body and return how it is made of them; None when there is none."""
    written = document.resolved(operation.get("requestBody"))
    if written is None or (method == "GET" and not document.siblings_count):  # OpenAPI 3.0: such a body is ignored.
        return None
    content = written.get("content") if isinstance(written, dict) else None
    if not isinstance(content, dict):
        raise InvalidTool("requestBody: an object with `content` is needed")
    media_type = best(content)
    if media_type is None:
        return None
    described = document.resolved(content[media_type])
    described = described if isinstance(described, dict) else {}
    schema = described.get("schema", {})
    fields = fields_of(schema, document) if _has_fields(media_type) else None
    if fields is None:
        return _add_whole(written, media_type, schema, arguments, translation)
    required = _is_required(written, fields)
    content_type = spelled(media_type)
    _add_fields(fields, described.get("encoding"), content_type, arguments, translation, required=required)
    return RestBody(content_type=content_type, required=required)


def _has_fields(media_type: str) -> bool:
    return is_json(media_type) or media_type.lower().startswith((FORM, "multipart/"))


def _is_required(body: JSONObject, fields: Fields) -> bool:
    """Return what the document says; where it says nothing, a body with required fields is meant to be there."""
    return body["required"] is True if "required" in body else bool(fields.required)


def _add_fields(
    fields: Fields,
    encodings: Any,
    content_type: str,
    arguments: Arguments,
    translation: Translation,
    *,
    required: bool,
) -> None:
    is_form = not is_json(content_type)
    for name, schema in fields.properties.items():
        if translation.is_hidden(schema):
            continue
        translated = translation.schema(schema)
        encoding = encodings.get(name) if isinstance(encodings, dict) else None
        written: JSONObject = {}
        if is_form:
            single = _single(schema, translation.document)
            written = _form_field(single, encoding if isinstance(encoding, dict) else {}, content_type)
            if written.get("base64"):
                translated = _as_base64(translation.schema(translation.document.resolved(schema)))
        arguments.add(name, _BODY, translated, required=required and name in fields.required, **written)
    arguments.is_closed = fields.is_closed


def _single(schema: Any, document: Document) -> JSONObject:
    """Return the schema of a field's value, of one of them where it is a list."""
    resolved = document.resolved(schema)
    if isinstance(resolved, dict) and resolved.get("type") == "array":
        resolved = document.resolved(resolved.get("items"))
    return resolved if isinstance(resolved, dict) else {}


def _form_field(single: JSONObject, encoding: JSONObject, content_type: str) -> JSONObject:
    """Return how a form writes one field (OpenAPI's encoding object)."""
    kind = encoding.get("contentType")
    written: JSONObject = {
        "style": encoding.get("style"),
        "explode": encoding.get("explode"),
        "allow_reserved": encoding.get("allowReserved") is True,
        "content_type": kind if isinstance(kind, str) and "*" not in kind and "," not in kind else None,
    }
    if content_type.lower().startswith("multipart/") and _is_binary(single):
        written["base64"] = True
    elif written["content_type"] is None and not written["style"] and _is_object(single):
        written["content_type"] = "application/json"
    return written


def _is_object(schema: JSONObject) -> bool:
    return schema.get("type") == "object" or "properties" in schema


def _is_binary(schema: JSONObject) -> bool:
    return schema.get("type") in ("string", None) and (
        schema.get("format") == "binary" or ("contentMediaType" in schema and "contentEncoding" not in schema)
    )


def _as_base64(schema: JSONObject) -> JSONObject:
    """Let the model write text for bytes: JSON has no other way."""
    if schema.get("type") == "array":
        return {**schema, "items": _as_base64({})}
    text = description(schema.get("description"), _BASE64_NOTE, most_chars=MOST_CHARS_OF_A_SCHEMA)
    return {"type": "string", "contentEncoding": "base64", "description": text}


def _add_whole(
    body: JSONObject, media_type: str, schema: Any, arguments: Arguments, translation: Translation
) -> RestBody:
    """Add the body as one argument: a value of JSON or of a form, text, or bytes as base64."""
    required = body.get("required") is True
    is_bytes = not _has_fields(media_type) and not is_text(media_type)
    if _has_fields(media_type):
        translated = translation.schema(schema)
    else:
        translated = {"type": "string", "description": f"a text of type {media_type}"}
    if is_bytes:
        translated = {"type": "string", "contentEncoding": "base64", "description": f"{media_type}, as base64"}
    text = description(body.get("description"), translated.get("description"), most_chars=MOST_CHARS_OF_A_SCHEMA)
    if text:
        translated = {**translated, "description": text}
    argument = arguments.add(_BODY, _BODY, translated, required=required, base64=is_bytes)
    return RestBody(
        content_type=spelled(media_type), required=required, mode="whole", argument=argument, base64=is_bytes
    )
