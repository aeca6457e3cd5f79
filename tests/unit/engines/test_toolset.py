"""Defaults of a toolset and of a tool."""

import pytest
from pydantic import ValidationError

from engines.errors import InvalidTool
from engines.tool import Tool
from engines.toolset import ToolDefaults, Toolset


def test_e10_a_tools_own_defaults_are_over_its_toolsets() -> None:
    tool = Tool("a", "w", metadata={"defaults": {"timeout_seconds": 5}})
    toolset = Toolset("w", None, (tool,), ToolDefaults(timeout_seconds=30, max_retries=3))
    assert toolset.defaults_for(tool) == ToolDefaults(timeout_seconds=5, max_retries=3)
    assert toolset.defaults_for(Tool("b", "w")) is toolset.defaults


@pytest.mark.parametrize("defaults", [{"timeout": 5}, {"timeout_seconds": 0}, {"on_error": "ignore"}, 7])
def test_a_tools_defaults_are_checked(defaults: object) -> None:
    tool = Tool("a", "w", metadata={"defaults": defaults})
    with pytest.raises(InvalidTool, match=r"tool 'w::a': metadata\.defaults"):
        Toolset("w", None, (tool,)).defaults_for(tool)


def test_defaults_are_thirty_seconds_and_no_retries() -> None:
    assert ToolDefaults() == ToolDefaults(timeout_seconds=30, max_retries=0, on_error="result", max_result_chars=None)
    with pytest.raises(ValidationError):
        ToolDefaults.model_validate({"retries": 1})
