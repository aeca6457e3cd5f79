"""A choice that forces a call holds for the first request only: else the loop would never end (rules U5, U6)."""

from typing import Any

_FREE = ("auto", "none")


def choice_for(tool_choice: Any, *, is_first: bool) -> Any:
    """What a request says of choosing tools, given what the job says."""
    return tool_choice if is_first or tool_choice in _FREE else None


def is_forced(tool_choice: Any, wire_name: str, *, is_first: bool) -> bool:
    """Whether a call to this tool was made because it had to be."""
    if not is_first or not isinstance(tool_choice, dict):
        return False
    function = tool_choice.get("function")
    return isinstance(function, dict) and function.get("name") == wire_name
