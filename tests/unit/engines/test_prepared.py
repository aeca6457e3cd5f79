"""A tool made ready: its arguments, and whether it may be asked twice."""

from typing import Any

import pytest

from engines.prepared import PreparedTool, is_idempotent, is_read_only
from engines.tool import Tool
from engines.toolset import Toolset


def prepared(properties: dict[str, Any], required: list[str]) -> PreparedTool:
    parameters = {"type": "object", "properties": properties, "required": required}
    tool = Tool("a", "w", parameters=parameters)
    return PreparedTool.of(tool, Toolset("w", None, (tool,)))


def test_defaults_are_applied_before_validation() -> None:
    tool = prepared({"unit": {"type": "string", "default": "celsius"}}, ["unit"])
    assert tool.arguments_for({}) == ({"unit": "celsius"}, "")


def test_nothing_is_coerced() -> None:
    tool = prepared({"days": {"type": "integer"}}, [])
    assert tool.arguments_for({"days": "3"}) == ({"days": "3"}, 'days: "3" is not of type "integer"')


def test_a_default_that_breaks_its_own_schema_is_left_out() -> None:
    tool = prepared({"note": {"type": "string", "default": None}}, [])
    assert tool.arguments_for({}) == ({}, "")


@pytest.mark.parametrize(
    ("metadata", "read_only", "idempotent"),
    [
        ({}, False, False),
        ({"idempotent": True}, False, True),
        ({"read_only": True}, True, True),
        ({"annotations": {"readOnlyHint": True}}, True, True),
        ({"annotations": {"idempotentHint": True}}, False, True),
        ({"rest_method": "get"}, True, True),
        ({"rest_method": "PUT"}, False, True),
        ({"rest_method": "POST"}, False, False),
        ({"idempotent": "no"}, False, False),
    ],
)
def test_d59_what_may_be_asked_twice(metadata: dict[str, Any], *, read_only: bool, idempotent: bool) -> None:
    tool = Tool("a", "w", metadata=metadata)
    assert (is_read_only(tool), is_idempotent(tool)) == (read_only, idempotent)
