"""What tools want to be said about them: added to the system message when a conversation begins (rule U18)."""

from collections.abc import Iterable, Sequence

from conversations.messages import Message, system, text_of
from engines.tool import Tool

SYSTEM_PROMPT, USER_PROMPT = "system_prompt", "user_prompt"
"""Metadata keys of a tool."""


def tool_prompts(tools: Iterable[Tool], key: str) -> list[str]:
    """The prompts of the tools, each once, in the order of the tools."""
    said = (tool.metadata.get(key) for tool in tools)
    return list(dict.fromkeys(text for text in said if isinstance(text, str) and text.strip()))


def with_tool_prompts(messages: Sequence[Message], tools: Iterable[Tool]) -> list[Message]:
    """The first messages of a conversation with what its tools want to be said: to the model, and by the user."""
    known = list(tools)
    result = list(messages)
    if told := tool_prompts(known, SYSTEM_PROMPT):
        opening = result[0] if result and result[0].get("role") in {"system", "developer"} else None
        if opening is None:
            result.insert(0, system("\n\n".join(told)))
        else:
            result[0] = opening | {"content": "\n\n".join([text_of(opening), *told]).strip()}
    if added := tool_prompts(known, USER_PROMPT):
        last = next((at for at in reversed(range(len(result))) if result[at].get("role") == "user"), None)
        if last is not None:
            result[last] = result[last] | {"content": "\n\n".join([text_of(result[last]), *added])}
    return result
