"""What tells the alternatives of a schema apart: said in a `discriminator`, which JSON Schema has no word for."""

from collections.abc import Mapping
from typing import Any

from engines.loaders.openapi.references import Document, parts_of

_SCHEMAS = "#/components/schemas/"


def with_tag(translated: Any, branch: Any, discriminator: Any, document: Document) -> Any:
    """Return an alternative with the values that its tag may have, where only the discriminator says them."""
    if not isinstance(discriminator, Mapping) or not isinstance(branch, Mapping) or not isinstance(translated, dict):
        return translated
    name, reference = discriminator.get("propertyName"), branch.get("$ref")
    if not isinstance(name, str) or not isinstance(reference, str) or translated.keys() != {"$ref"}:
        return translated
    values = _values(discriminator.get("mapping"), reference)
    if not values or _says_it_itself(branch, name, document, ()):
        return translated
    return {**translated, "properties": {name: {"enum": values}}}


def _values(mapping: Any, reference: str) -> list[str]:
    """Return the tags of an alternative: those that are mapped to it, or its name where nothing is mapped."""
    if not isinstance(mapping, Mapping) or not mapping:
        return [reference.rpartition("/")[2]]
    return [tag for tag, target in mapping.items() if target in (reference, reference.removeprefix(_SCHEMAS))]


def _says_it_itself(written: Any, name: str, document: Document, above: tuple[Any, ...]) -> bool:
    """Whether the property has values of its own already, here or in an `allOf`."""
    schema = document.resolved(written)
    if not isinstance(schema, dict) or any(schema is each for each in above):
        return False
    properties = schema.get("properties")
    tag: Any = document.resolved(properties.get(name)) if isinstance(properties, dict) else {}
    if isinstance(tag, dict) and ("enum" in tag or "const" in tag):
        return True
    return any(_says_it_itself(part, name, document, (*above, schema)) for part in parts_of(schema, "allOf"))
