"""What an operation answers: the schema of its JSON of 2xx (rule D53), and the media type to ask for."""

from collections.abc import Iterator

from engines.loaders.openapi.media_types import first_json
from engines.loaders.openapi.references import Document
from engines.loaders.openapi.schemas import Translation
from engines.plain import JSONObject


def output_schema(operation: JSONObject, document: Document) -> JSONObject | None:
    """Return the schema of what comes back as JSON, of any of several; None when that is not described."""
    translation = Translation(document, "response")
    found: list[JSONObject] = []
    for content in _contents(operation, document):
        media_type = first_json(content)
        described = document.resolved(content[media_type]) if media_type is not None else None
        if not isinstance(described, dict) or not isinstance(described.get("schema"), dict):
            continue
        schema = translation.schema(described["schema"])
        if schema and schema not in found:
            found.append(schema)
    if not found:
        return None
    return translation.completed(found[0] if len(found) == 1 else {"anyOf": found})


def accepted(operation: JSONObject, document: Document) -> str | None:
    """Return the media type to ask for: JSON where there is any, else the first; None when nothing is described."""
    kinds = [media_type for content in _contents(operation, document) for media_type in content]
    chosen = first_json(kinds) or next(iter(kinds), None)
    return None if chosen is None or "*" in chosen else chosen


def _contents(operation: JSONObject, document: Document) -> Iterator[JSONObject]:
    """Yield what may come back, media type → its description, of each 2xx; of `default` only when there is none."""
    responses = operation.get("responses")
    if not isinstance(responses, dict):
        return
    codes = sorted(code for code in responses if str(code).upper().startswith("2"))
    for code in codes or ["default"]:
        response = document.resolved(responses.get(code))
        content = response.get("content") if isinstance(response, dict) else None
        if isinstance(content, dict) and content:
            yield content
