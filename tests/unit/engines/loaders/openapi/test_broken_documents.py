"""A description that is broken anywhere is refused with its place, or loads: nothing else ever comes out."""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from engines.errors import ConfigurationInvalid
from engines.loaders.entries import Surroundings
from engines.loaders.openapi.loader import load
from engines.loaders.openapi.metadata import RestOperation

JUNK: tuple[Any, ...] = (None, True, -1, 1.5, "", "text", [], {}, ["a", {}, None], {"a": 1}, {"$ref": "#"}, {"$ref": 5})
PET = {
    "type": "object",
    "required": ["kind"],
    "nullable": True,
    "properties": {"kind": {"type": "string", "enum": ["a"]}, "next": {"$ref": "#/components/schemas/Pet"}},
    "allOf": [{"oneOf": [{"$ref": "#/components/schemas/Pet"}], "discriminator": {"propertyName": "kind"}}],
}
OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "servers": [{"url": "https://{a}.example", "variables": {"a": {"default": "b"}}}],
    "security": [{"key": []}],
    "paths": {
        "/a/{b}": {
            "parameters": [{"in": "path", "name": "b", "schema": {"type": "string"}}],
            "post": {
                "operationId": "a",
                "tags": ["t"],
                "parameters": [
                    {"in": "query", "name": "q", "content": {"application/json": {"schema": {"type": "object"}}}}
                ],
                "requestBody": {
                    "content": {
                        "multipart/form-data": {
                            "schema": {
                                "type": "object",
                                "required": ["f"],
                                "properties": {"f": {"type": "array", "items": {"format": "binary"}}},
                            },
                            "encoding": {"f": {"contentType": "image/png", "style": "form"}},
                        }
                    }
                },
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}
                },
            },
        }
    },
    "components": {"schemas": {"Pet": PET}, "securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "k"}}},
}
SWAGGER: dict[str, Any] = {
    "swagger": "2.0",
    "host": "a.example",
    "basePath": "/v1",
    "schemes": ["https"],
    "consumes": ["application/json"],
    "produces": ["application/json"],
    "securityDefinitions": {"basic": {"type": "basic"}},
    "paths": {
        "/a": {
            "get": {
                "parameters": [{"in": "query", "name": "q", "type": "array", "items": {}, "collectionFormat": "csv"}]
            },
            "post": {
                "parameters": [{"in": "formData", "name": "f", "type": "file", "required": True}],
                "responses": {"200": {"schema": {"type": "file"}}},
            },
            "put": {
                "consumes": ["text/plain"],
                "parameters": [{"in": "body", "name": "b", "schema": {"type": "object"}}],
                "responses": {"default": {"schema": {"type": "string"}}},
            },
        }
    },
}


def places(part: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where every value of a document stands."""
    if place:
        yield place
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in items:
        yield from places(value, (*place, key))


def broken_at(document: dict[str, Any], place: tuple[Any, ...], junk: Any) -> dict[str, Any]:
    broken = copy.deepcopy(document)
    part: Any = broken
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = junk
    return broken


@pytest.fixture
def comes_out(surroundings: Surroundings) -> Callable[[dict[str, Any]], str]:
    """Load a document as an optional entry does, and say what became of it."""
    left_out: list[ConfigurationInvalid] = []
    optional = replace(surroundings, leave_out=left_out.append)

    def outcome(document: dict[str, Any]) -> str:
        left_out.clear()
        (surroundings.folder / "api.json").write_text(json.dumps(document))
        try:
            tools = load({"type": "openapi", "spec": "api.json"}, optional)
        except ConfigurationInvalid as error:
            return str(error)
        for tool in tools:
            RestOperation.of(tool)
        return str(left_out[0]) if left_out else ""

    return outcome


@pytest.mark.parametrize("document", [OPENAPI, SWAGGER], ids=["openapi", "swagger"])
def test_u2_any_value_replaced_by_junk_is_told_or_harmless(
    document: dict[str, Any], comes_out: Callable[[dict[str, Any]], str]
) -> None:
    assert comes_out(document) == ""

    outcomes = [comes_out(broken_at(document, place, junk)) for place in places(document) for junk in JUNK]

    assert {told.partition(":")[0] for told in outcomes} == {"", "tools.registry[0].spec"}
