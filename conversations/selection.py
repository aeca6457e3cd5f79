"""The tools that a job is offered: chosen, named for the wire and encoded once for all jobs with the same choice."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from conversations.encoding import encode_json
from conversations.errors import ToolChoiceInvalid
from conversations.messages import JSONObject
from conversations.wire.names import WireNames
from conversations.wire.openai import tool_choice_of, tool_definitions
from engines.configuration import SampleSettings
from engines.nearest import hint
from engines.registry import ToolRegistry
from engines.samplers.random import draw, pool
from engines.tool import Tool

SELECTIONS_KEPT = 512
_MODES = frozenset({"auto", "none", "required"})


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """Some tools, ready to be sent: `native` are OpenAI's definitions, `encoded` is their JSON array.

    `external` are the qualified names of tools that somebody else runs: their calls pause the conversation.
    """

    tools: list[Tool]
    names: WireNames
    native: list[JSONObject]
    encoded: bytes
    external: frozenset[str] = frozenset()

    @classmethod
    def of(cls, tools: Iterable[Tool], *, external: Iterable[str] = ()) -> Self:
        """The selection of these tools, some of which are `external`."""
        chosen = list(tools)
        names = WireNames(chosen)
        native = tool_definitions(chosen, names)
        return cls(chosen, names, native, encode_json(native), frozenset(external))

    def wire_names(self) -> list[str]:
        """The names that the model knows, in the order of its definitions."""
        return [definition["function"]["name"] for definition in self.native]

    def choice(self, tool_choice: Any) -> Any:
        """A job's `tool_choice` (a mode, `ns::tool`, or OpenAI's object) as the wire spells it (rule U5).

        ToolChoiceInvalid for a tool that is not offered.
        """
        if tool_choice is None or (isinstance(tool_choice, str) and tool_choice in _MODES):
            return tool_choice
        named = tool_choice if isinstance(tool_choice, str) else _named_function(tool_choice)
        qualified = self.names.decode(named)
        if qualified is None:
            known = [tool.qualified_name for tool in self.tools]
            raise ToolChoiceInvalid(f"tool_choice: no tool {named!r} is offered; {hint(named, known)}")
        return tool_choice_of(qualified, self.names)


class Selector:
    """Chooses the tools of each job of a run; the same job gets the same tools on any worker."""

    def __init__(self, registry: ToolRegistry, sample: SampleSettings | None = None) -> None:
        self._registry = registry
        self._sample = sample
        self._choices: dict[tuple[tuple[str, ...] | None, tuple[str, ...]], list[Tool]] = {}
        self._selections: OrderedDict[tuple[int, ...], ToolSelection] = OrderedDict()

    def select(self, patterns: Sequence[str] | None, disabled: Sequence[str] = (), *, seed: int = 0) -> ToolSelection:
        """What `tools` and `disabled_tools` of a job line leave (None: all), and of that what the recipe's draw takes.

        A job that leaves fewer tools than the draw wants is offered all of them. ConfigurationInvalid for a pattern
        that names no tool.
        """
        tools = self._chosen(None if patterns is None else tuple(patterns), tuple(disabled))
        if self._sample is not None:
            most = len(pool(tools, self._sample.namespace))
            tools = draw(tools, min(self._sample.k, most), self._sample.namespace, seed)
        key = tuple(id(tool) for tool in tools)  # the registry keeps its tools alive, so an id names one
        selection = self._selections.get(key)
        if selection is None:
            selection = self._selections[key] = ToolSelection.of(tools)
            if len(self._selections) > SELECTIONS_KEPT:
                self._selections.popitem(last=False)
        else:
            self._selections.move_to_end(key)
        return selection

    def _chosen(self, patterns: tuple[str, ...] | None, disabled: tuple[str, ...]) -> list[Tool]:
        chosen = self._choices.get((patterns, disabled))
        if chosen is None:
            if len(self._choices) >= SELECTIONS_KEPT:
                self._choices.clear()
            chosen = self._choices[patterns, disabled] = self._registry.select(patterns, disabled)
        return chosen


def _named_function(tool_choice: Any) -> str:
    function = tool_choice.get("function") if isinstance(tool_choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        raise ToolChoiceInvalid(
            f'tool_choice: {tool_choice!r} is none; write "auto", "none", "required", a tool such as "ns::tool", '
            'or {"type": "function", "function": {"name": "ns::tool"}}'
        )
    return name
