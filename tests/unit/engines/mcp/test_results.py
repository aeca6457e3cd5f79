"""What a server's answer is worth."""

from typing import Any

import pytest
from mcp.types import CallToolResult, TextContent

from engines.errors import ToolFailed
from engines.mcp.results import result_of
from engines.tool import INFERRED_OUTPUT, ErrorType, Tool

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]}


def answered(tool: Tool) -> Any:
    return result_of(CallToolResult(content=[TextContent(type="text", text="warm")]), tool)


def test_d42_an_answer_must_keep_to_the_schema_that_the_server_promised() -> None:
    with pytest.raises(ToolFailed) as failed:
        answered(Tool("weather", "w", output_parameters=SCHEMA))
    assert failed.value.error_type is ErrorType.schema_violation


def test_d77_a_schema_that_a_model_made_up_is_no_promise_of_the_server() -> None:
    inferred = Tool("weather", "w", output_parameters=SCHEMA, metadata={INFERRED_OUTPUT: True})
    assert answered(inferred) == [{"type": "text", "text": "warm"}]
