"""Tools for tests of the loop: each run of one is counted, so that a second run of a call shows."""

from typing import Any

from engines.configuration import ToolsConfiguration

RUNS: list[tuple[str, Any]] = []
INLINE = True


def add(a: int, b: int) -> int:
    """Add two numbers."""
    RUNS.append(("add", (a, b)))
    return a + b


def echo(text: str) -> str:
    """Say the text again."""
    RUNS.append(("echo", text))
    return text


def fail(reason: str) -> str:
    """Raise."""
    RUNS.append(("fail", reason))
    raise RuntimeError(reason)


def hand_over(topic: str) -> str:
    """Answer the user itself."""
    RUNS.append(("hand_over", topic))
    if topic == "broken":
        raise RuntimeError(topic)
    return f"All about {topic}."


def _tool(name: str, **properties: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"Tool {name}.",
        "parameters": {
            "type": "object",
            "properties": {key: {"type": kind} for key, kind in properties.items()},
            "required": list(properties),
            "additionalProperties": False,
        },
    }


def configuration(*, with_hand_over: bool = False, **namespace: Any) -> ToolsConfiguration:
    """The tools block: namespace `w` with add, echo, fail and, if wanted, hand_over; keywords are its settings."""
    tools = [_tool("add", a="integer", b="integer"), _tool("echo", text="string"), _tool("fail", reason="string")]
    if with_hand_over:
        tools.append(_tool("hand_over", topic="string") | {"metadata": {"takes_control": True}})
    return ToolsConfiguration.model_validate(
        {
            "registry": [{"type": "inline", "namespace": "w", "engine": "here", "tools": tools}],
            "engines": {"here": {"type": "local", "module": "tests.support.counting_tools"}},
            "namespaces": {"w": namespace} if namespace else {},
        }
    )
