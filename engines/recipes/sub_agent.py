"""What a tool keeps of the recipe behind it, and what its results keep of the conversation behind them."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from engines.plain import JSONObject
from engines.tool import Tool

SUB_AGENT = "sub_agent"
"""The metadata key of a tool (`SubAgent`), and of its results: `{model_calls, tool_calls, input_tokens, …}`."""

USAGE = ("model_calls", "tool_calls", "input_tokens", "output_tokens")


class SubAgent(BaseModel):
    """A recipe in its stored form, pinned whole; `prompt` is the template of its user's message."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    recipe: JSONObject
    prompt: str
    keep_messages: bool = False

    @classmethod
    def of(cls, tool: Tool) -> Self | None:
        """The one behind a tool; None for any other tool."""
        written = tool.metadata.get(SUB_AGENT)
        return None if written is None else cls.model_validate(written)

    @property
    def tools_block(self) -> JSONObject:
        """The recipe's own tools, as they are pinned."""
        block: JSONObject = (self.recipe.get("recipe") or {}).get("tools") or {}
        return block


def stateful_namespaces(tools: Iterable[Tool]) -> dict[str, int]:
    """The stateful namespaces that conversations behind these tools touch, at any depth, with their permits."""
    found: dict[str, int] = {}
    for tool in tools:
        if SUB_AGENT in tool.metadata:
            for name, permits in _stateful_behind(tool):
                found[name] = min(permits, found.get(name, permits))
    return found


@lru_cache(maxsize=256)  # asked for every line of a run's jobs, about the same few tools
def _stateful_behind(tool: Tool) -> tuple[tuple[str, int], ...]:
    agent = SubAgent.of(tool)
    return () if agent is None else tuple(_stateful(agent.tools_block))


def _stateful(block: JSONObject) -> Iterator[tuple[str, int]]:
    for entry in block.get("registry", ()):
        tools = [Tool.from_dict(each, namespace=entry["namespace"]) for each in entry.get("tools", ())]
        settings = block.get("namespaces", {}).get(entry["namespace"], {})
        if settings.get("stateful") and tools:
            yield entry["namespace"], settings.get("max_concurrency") or 1
        yield from stateful_namespaces(tools).items()


def usage_by_tool(tool_results: Iterable[Mapping[str, Any]], *, without: Iterable[str] = ()) -> dict[str, JSONObject]:
    """Sum up what the conversations behind a record's results used: `{"ns::tool": {calls, failed, model_calls, …}}`.

    Results with one of the metadata keys in `without` stand for another call's and count nothing.
    """
    passed_over = frozenset(without)
    sums: dict[str, JSONObject] = {}
    for entry in tool_results:
        used = entry["metadata"].get(SUB_AGENT)
        if used is None or passed_over & entry["metadata"].keys():
            continue
        own = sums.setdefault(entry["name"], {"calls": 0, "failed": 0, **dict.fromkeys(USAGE, 0)})
        own["calls"] += 1
        own["failed"] += entry["error"] is not None
        for name in USAGE:
            own[name] += used.get(name, 0)
    return sums
