"""Answers made results, and failures of known types."""

from typing import Any

import pytest
from mcp import MCPError
from mcp.types import CallToolResult, ElicitRequest, ElicitRequestFormParams, InputRequiredResult, TextContent

from engines.errors import ToolFailed
from engines.mcp.results import failure_of, result_of
from engines.tool import INFERRED_OUTPUT, ErrorType, Tool

TOOL = Tool("look", "desk")
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]}


def answered(*texts: str, **more: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text) for text in texts], **more)


def test_d38_structured_content_wins_and_blocks_are_objects() -> None:
    assert result_of(answered("x", structured_content={"result": [1]}), TOOL) == {"result": [1]}
    assert result_of(answered("a", "b"), TOOL) == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


@pytest.mark.parametrize(
    ("answer", "told"),
    [(answered("no", "way", is_error=True), "no\nway"), (answered(is_error=True), "Tool reported isError=true")],
)
def test_d38_an_error_is_its_joined_text(answer: CallToolResult, told: str) -> None:
    with pytest.raises(ToolFailed) as caught:
        result_of(answer, TOOL)
    assert (caught.value.message, caught.value.error_type) == (told, ErrorType.execution)


def test_d42_an_answer_must_keep_to_the_schema_that_the_server_promised() -> None:
    with pytest.raises(ToolFailed) as failed:
        result_of(answered("warm"), Tool("weather", "w", output_parameters=SCHEMA))
    assert failed.value.error_type is ErrorType.schema_violation


def test_d77_a_schema_that_a_model_made_up_is_no_promise_of_the_server() -> None:
    inferred = Tool("weather", "w", output_parameters=SCHEMA, metadata={INFERRED_OUTPUT: True})
    assert result_of(answered("warm"), inferred) == [{"type": "text", "text": "warm"}]


def test_sec_s9_a_server_that_wants_something_first_is_refused() -> None:
    form = ElicitRequestFormParams(message="password?", requested_schema={"type": "object", "properties": {}})
    answer = InputRequiredResult(input_requests={"1": ElicitRequest(params=form)})
    with pytest.raises(ToolFailed, match="asks for elicitation/create before it answers, which is not granted") as c:
        result_of(answer, TOOL)
    assert c.value.error_type is ErrorType.permission


@pytest.mark.parametrize(
    ("code", "error_type", "told"),
    [
        (-32000, ErrorType.network, "the cause"),
        (-32001, ErrorType.timeout, "MCP error -32001: the cause"),
        (-32602, ErrorType.validation, "MCP error -32602: the cause"),
        (-32601, ErrorType.execution, "MCP error -32601: the cause"),
        (-32603, ErrorType.execution, "MCP error -32603: the cause"),
    ],
)
def test_e21_each_protocol_error_has_its_type(code: int, error_type: ErrorType, told: str) -> None:
    failure = failure_of(MCPError(code, "the cause"))
    assert (failure.error_type, failure.message) == (error_type, told)
