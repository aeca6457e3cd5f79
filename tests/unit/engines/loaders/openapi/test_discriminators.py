"""Tags that only a discriminator names are told to the model."""

from typing import Any

import pytest

from engines.loaders.openapi.references import Document
from engines.loaders.openapi.schemas import Translation
from engines.schemas import compiled

TAGGED = {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}}}
SCHEMAS: dict[str, Any] = {
    "Cat": {"allOf": [TAGGED, {"properties": {"lives": {"type": "integer"}}}]},
    "Dog": TAGGED,
    "Cow": {"type": "object", "properties": {"kind": {"const": "cow"}}},
    "Own": {"allOf": [{"$ref": "#/components/schemas/Cow"}]},
    "Loop": {"allOf": [{"$ref": "#/components/schemas/Loop"}, TAGGED]},
}
MAPPING = {"meow": "#/components/schemas/Cat", "purr": "Cat", "bark": "#/components/schemas/Dog"}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def kinds(names: list[str], discriminator: Any) -> set[str]:
    """Return those kinds that an animal of these sorts may be."""
    translation = Translation(Document({"openapi": "3.1.0", "components": {"schemas": SCHEMAS}}), "request")
    written = {"oneOf": [ref(name) for name in names], "discriminator": discriminator}
    schema = compiled(translation.completed(translation.schema(written)))
    return {kind for kind in ("Cat", "Dog", "Loop", "meow", "purr", "bark", "cow") if schema.is_valid({"kind": kind})}


@pytest.mark.parametrize(
    ("names", "discriminator", "allowed"),
    [
        (["Cat", "Dog"], {"propertyName": "kind", "mapping": MAPPING}, {"meow", "purr", "bark"}),
        (["Cat", "Dog"], {"propertyName": "kind"}, {"Cat", "Dog"}),
        (["Cow"], {"propertyName": "kind"}, {"cow"}),
        (["Own"], {"propertyName": "kind"}, {"cow"}),
        (["Loop"], {"propertyName": "kind"}, {"Loop"}),
        (["Cat"], {"propertyName": "other"}, {"Cat", "Dog", "Loop", "meow", "purr", "bark", "cow"}),
        (["Cat"], "kind", {"Cat", "Dog", "Loop", "meow", "purr", "bark", "cow"}),
        (
            ["Cat"],
            {"propertyName": "kind", "mapping": {"x": "Dog"}},
            {"Cat", "Dog", "Loop", "meow", "purr", "bark", "cow"},
        ),
    ],
)
def test_the_tag_has_the_values_that_the_discriminator_gives(
    names: list[str], discriminator: Any, allowed: set[str]
) -> None:
    assert kinds(names, discriminator) == allowed
