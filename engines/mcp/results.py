"""What a server answers to a call, made a result or a failure of a known type (rules D38, D42, E21)."""

from typing import Any

from mcp import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    REQUEST_TIMEOUT,
    CallToolResult,
    InputRequiredResult,
)

from engines.errors import ToolFailed
from engines.mcp.text import printable
from engines.plain import JSONObject
from engines.schemas import compiled, problems
from engines.tool import INFERRED_OUTPUT, ErrorType, Tool

_IS_ERROR = "Tool reported isError=true"
_ERROR_CHARS = 10_000
_TYPES = {
    CONNECTION_CLOSED: ErrorType.network,
    REQUEST_TIMEOUT: ErrorType.timeout,
    INVALID_PARAMS: ErrorType.validation,
}


def result_of(answer: CallToolResult | InputRequiredResult, tool: Tool) -> Any:
    """Return the structured content as the server sent it, else the blocks of content as objects; raise ToolFailed.

    A tool with an output schema must keep to the schema that was pinned: what breaks it is a schema_violation.
    """
    if isinstance(answer, InputRequiredResult):
        asked = ", ".join(sorted({request.method for request in (answer.input_requests or {}).values()}))
        message = f"the server asks for {printable(asked, 200) or 'input'} before it answers, which is not granted"
        raise ToolFailed(ErrorType.permission, message)
    if answer.is_error:
        text = "\n".join(block.text for block in answer.content if block.type == "text" and block.text)
        raise ToolFailed(ErrorType.execution, printable(text, _ERROR_CHARS) or _IS_ERROR)
    if tool.output_parameters is not None and INFERRED_OUTPUT not in tool.metadata:
        _check(answer.structured_content, tool.output_parameters)
    if answer.structured_content is not None:
        return answer.structured_content
    return [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in answer.content]


def failure_of(error: MCPError) -> ToolFailed:
    """Return the failure that a protocol error stands for; it does not name the server, since a model reads it."""
    kind = _TYPES.get(error.error.code, ErrorType.execution)
    message = printable(error.error.message, _ERROR_CHARS)
    return ToolFailed(kind, message if kind is ErrorType.network else f"MCP error {error.error.code}: {message}")


def _check(content: Any, schema: JSONObject) -> None:
    if content is None:
        message = "the server answered without structured content, which the tool's output schema promises"
        raise ToolFailed(ErrorType.schema_violation, message)
    if problem := problems(compiled(schema), content):
        raise ToolFailed(ErrorType.schema_violation, f"the server's answer breaks the tool's output schema: {problem}")
