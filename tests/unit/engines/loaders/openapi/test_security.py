"""Security schemes are told, never filled."""

from collections.abc import Callable
from typing import Any

import pytest

from engines.tool import Tool

SCHEMES = {
    "bearer": {"type": "http", "scheme": "Bearer"},
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "login": {"type": "oauth2", "flows": {}},
    "linked": {"$ref": "#/components/securitySchemes/key"},
}


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        ({}, ["bearer: http bearer"]),
        ({"security": [{"key": []}, {"login": ["read"]}]}, ["key: API key in header 'X-Key'", "login: oauth2"]),
        ({"security": [{"linked": []}]}, ["linked: API key in header 'X-Key'"]),
        ({"security": [{"unheard": []}]}, ["unheard: not described"]),
        ({"security": []}, None),
        ({"security": [{}]}, None),
    ],
)
def test_d47_the_schemes_of_an_operation_are_noted(
    tool_of: Callable[..., Tool], operation: dict[str, Any], told: list[str] | None
) -> None:
    tool = tool_of(operation, components={"securitySchemes": SCHEMES}, security=[{"bearer": []}])

    assert tool.metadata.get("rest_security") == told
