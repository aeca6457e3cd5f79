"""A tool made ready: its arguments, and whether it may be asked twice."""

from typing import Any

import pytest

from engines.calling.prepared import PreparedTool, is_idempotent, is_read_only, is_writer
from engines.tool import Tool
from engines.toolset import CacheSettings, ToolDefaults, Toolset


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
        ({"rest_method": "get", "read_only": False}, False, True),
        ({"rest_method": "get", "idempotent": False}, True, False),
        ({"annotations": {"readOnlyHint": True}, "read_only": False}, False, False),
        ({"annotations": {"readOnlyHint": False}, "read_only": True}, True, True),
        ({"annotations": {"idempotentHint": False, "readOnlyHint": True}}, True, True),
    ],
)
def test_d59_what_may_be_asked_twice(metadata: dict[str, Any], *, read_only: bool, idempotent: bool) -> None:
    tool = Tool("a", "w", metadata=metadata)
    assert (is_read_only(tool), is_idempotent(tool)) == (read_only, idempotent)


@pytest.mark.parametrize(
    ("metadata", "writer"),
    [
        ({}, False),
        ({"read_only": False}, True),
        ({"read_only": True}, False),
        ({"rest_method": "POST"}, True),
        ({"rest_method": "GET"}, False),
        ({"annotations": {"readOnlyHint": False}}, True),
    ],
)
def test_a_writer_is_one_that_is_known_to_be(metadata: dict[str, Any], *, writer: bool) -> None:
    assert is_writer(Tool("a", "w", metadata=metadata)) is writer


@pytest.mark.parametrize(
    ("depends", "on_error", "read_only", "overlaps", "cached"),
    [
        (False, "result", True, True, True),
        (True, "result", True, False, False),
        (False, "raise", True, False, True),
        (False, "result", False, True, False),
    ],
)
def test_a11_what_may_overlap_and_what_may_be_kept(
    on_error: Any, *, depends: bool, read_only: bool, overlaps: bool, cached: bool
) -> None:
    tool = Tool("a", "w", metadata={"read_only": read_only})
    toolset = Toolset("w", None, (tool,), ToolDefaults(on_error=on_error), cache=CacheSettings())
    ready = PreparedTool.of(tool, toolset, depends_on_session=depends)
    assert (ready.may_overlap, ready.is_cached) == (overlaps, cached)
    without = PreparedTool.of(tool, Toolset("w", None, (tool,)), depends_on_session=False)
    assert not without.is_cached
