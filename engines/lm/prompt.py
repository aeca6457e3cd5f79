"""What the lm engine says to its model: the rules, each earlier call with its result, then the call to answer (D19)."""

import re
from collections.abc import Callable

from engines.history import HistoryEntry
from engines.plain import JSONObject, canonical, compact, text_of
from engines.tool import Tool, ToolCall, ToolResult

INSTRUCTION = (
    "You stand in for the software behind a set of tools. Each message gives you the specification of a tool and a "
    "call of it; answer with the result that the real tool would plausibly return for exactly these arguments, as "
    "one JSON object and nothing else. Be specific and realistic, let the call succeed, follow output_parameters to "
    "the letter where the specification has them, and stay consistent with the results you gave before."
)

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_NAME_CHARS = 64

SpecificationOf = Callable[[str], Tool | None]


def messages_for(
    call: ToolCall,
    tool: Tool,
    history: list[HistoryEntry],
    *,
    model_id: str,
    specification_of: SpecificationOf,
) -> list[JSONObject]:
    """Return 1 + 2n + 1 messages for a history of n; the same prefix every time, so that providers can cache it."""
    role = "developer" if "gpt" in model_id.lower() else "system"  # Rule D20.
    messages: list[JSONObject] = [{"role": role, "content": INSTRUCTION}]
    for entry in history:
        known = specification_of(entry.call.qualified_name)
        messages.append({"role": "user", "content": asked(entry.call, known)})
        messages.append({"role": "assistant", "content": answered(entry.result)})
    messages.append({"role": "user", "content": asked(call, tool)})
    return messages


def asked(call: ToolCall, tool: Tool | None) -> str:
    """Return the user's turn for one call."""
    specification: JSONObject = {"name": call.qualified_name}
    if tool is not None:
        specification["description"] = tool.description
        specification["parameters"] = tool.parameters
        if tool.output_parameters is not None:
            specification["output_parameters"] = tool.output_parameters
    wanted = {"name": call.qualified_name, "arguments": call.arguments}
    return f"Tool specification:\n{compact(specification)}\n\nTool call:\n{canonical(wanted)}"


def answered(result: ToolResult) -> str:
    """Return the assistant's turn for one result; an error is shown as one (rule D28)."""
    if result.is_error:
        return compact({"error": result.error})
    return text_of(result.result) if isinstance(result.result, str) else compact(result.result)


def response_format_for(tool: Tool) -> JSONObject:
    """Return the format the model must keep to: the tool's output schema, or any JSON object (rule D21)."""
    if tool.output_parameters is None:
        return {"type": "json_object"}
    name = _NOT_IN_A_NAME.sub("_", tool.name)[:_NAME_CHARS]
    return {"type": "json_schema", "json_schema": {"name": name, "schema": tool.output_parameters}}
