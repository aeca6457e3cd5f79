"""The tools that a job is offered: chosen, named for the wire and encoded once for all jobs with the same choice."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from conversations.encoding import encode_json
from conversations.errors import ToolChoiceInvalid, ToolsInvalid
from conversations.messages import JSONObject
from conversations.policy.conflict import TAKES_CONTROL
from conversations.wire.anthropic import tool_extras
from conversations.wire.names import WireNames
from conversations.wire.openai import tool_choice_of, tool_definitions
from engines.configuration import PermissionSettings, SampleSettings
from engines.nearest import hint, listed
from engines.offering import Offer, offer
from engines.permissions import Permissions
from engines.registry import ToolRegistry
from engines.samplers.prepare import Draw
from engines.samplers.sampler import build_sampler
from engines.tool import Tool, ToolCall
from engines.tool_settings import EXCLUSIVE, is_on

SELECTIONS_KEPT = 512
_MODES = frozenset({"auto", "none", "required"})
IsExternal = Callable[[ToolCall], bool]


def _never(_call: ToolCall) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """Some tools, ready to be sent: `native` are OpenAI's definitions, `encoded` is their JSON array.

    `external` says of a call whether somebody else answers it: such calls pause the conversation. `names` may know
    more tools than are offered: those that were, and that the history still speaks of. `extras` is JSON that one
    provider's definitions take beyond OpenAI's, by wire name.
    """

    tools: list[Tool]
    names: WireNames
    native: list[JSONObject]
    encoded: bytes
    external: IsExternal = _never
    taking_control: frozenset[str] = frozenset()
    offered: frozenset[str] = frozenset()
    extras: bytes = b""

    @classmethod
    def of(
        cls,
        tools: Iterable[Tool],
        *,
        external: IsExternal | Iterable[str] = _never,
        names: WireNames | None = None,
    ) -> Self:
        """The selection of these tools; `external` may also be the qualified names of some of them.

        ToolsInvalid for a tool that is there twice (rule A17); overloads of one name are no such thing.
        """
        chosen = list(tools)
        offered = frozenset(tool.qualified_name for tool in chosen)
        if len(offered) < len(chosen):
            _refuse_twins(chosen)
        names = names or WireNames(chosen)
        native = tool_definitions(chosen, names)
        extras = tool_extras(chosen, names)
        taking_control = frozenset(tool.qualified_name for tool in chosen if tool.metadata.get(TAKES_CONTROL))
        is_external = external if callable(external) else _one_of(external)
        return cls(
            chosen,
            names,
            native,
            encode_json(native),
            is_external,
            taking_control,
            offered,
            encode_json(extras) if extras else b"",
        )

    def offers(self, wire_name: str) -> bool:
        """Whether a call of this name may be run."""
        return self.names.decode(wire_name) in self.offered

    def qualified(self, name: str) -> str | None:
        """The tool that is meant by a wire name, by `ns::tool`, or by a bare name that one tool alone has.

        None for what is not offered; ToolsInvalid for a bare name that several namespaces have (rule E6).
        """
        qualified = self.names.decode(name)
        if qualified is not None:
            return qualified if qualified in self.offered else None
        meant = sorted({tool.qualified_name for tool in self.tools if tool.name == name})
        if len(meant) > 1:
            raise ToolsInvalid(f"{name!r} is the name of several tools ({listed(meant)}); say which")
        return meant[0] if meant else None

    def takes_control(self, qualified_name: str) -> bool:
        """Whether a tool answers the user itself, so that the conversation ends with its result (rule U12)."""
        return qualified_name in self.taking_control

    def is_exclusive(self, qualified_name: str) -> bool:
        """Whether it is a tool that is offered alone (rule U3)."""
        return len(self.offered) == 1 and any(
            tool.qualified_name == qualified_name and is_on(tool, EXCLUSIVE) for tool in self.tools
        )

    def wire_names(self) -> list[str]:
        """The names that the model knows, in the order of its definitions."""
        return [definition["function"]["name"] for definition in self.native]

    def choice(self, tool_choice: Any) -> Any:
        """A job's `tool_choice` (a mode, `ns::tool`, or OpenAI's object) as the wire spells it (rule U5).

        ToolChoiceInvalid for a tool that is not offered, and for a bare name that several namespaces have (rule E6).
        """
        if tool_choice is None or (isinstance(tool_choice, str) and tool_choice in _MODES):
            return tool_choice
        named = tool_choice if isinstance(tool_choice, str) else _named_function(tool_choice)
        try:
            qualified = self.qualified(named)
        except ToolsInvalid as error:
            raise ToolChoiceInvalid(f"tool_choice: {error}") from error
        if qualified is None:
            known = [tool.qualified_name for tool in self.tools]
            raise ToolChoiceInvalid(f"tool_choice: no tool {named!r} is offered; {hint(named, known)}")
        return tool_choice_of(qualified, self.names)


class Selector:
    """Chooses the tools of each job of a run; the same job gets the same tools on any worker."""

    def __init__(
        self,
        registry: ToolRegistry,
        sample: SampleSettings | None = None,
        permissions: PermissionSettings | None = None,
    ) -> None:
        """`permissions` say which calls wait for somebody outside (those that are refused, an engine refuses)."""
        self._registry = registry
        self._sampler = None if sample is None else build_sampler(sample, registry)
        self._permissions = Permissions.of(permissions or PermissionSettings(), registry)
        self._offers: dict[tuple[tuple[str, ...] | None, tuple[str, ...]], tuple[Offer, Draw | None]] = {}
        self._selections: OrderedDict[tuple[int, ...], ToolSelection] = OrderedDict()

    def select(self, patterns: Sequence[str] | None, disabled: Sequence[str] = (), *, seed: int = 0) -> ToolSelection:
        """What `tools` and `disabled_tools` of a job line leave (None: all), and of that what the recipe's draw takes.

        A job that leaves fewer tools than the draw wants is offered all of them; a drawn tool brings its overloads, and
        tools that are always on come on top. ConfigurationInvalid for a pattern that names no tool.
        """
        offered, draw = self._offer(None if patterns is None else tuple(patterns), tuple(disabled))
        return self._kept(offered.tools if draw is None else offered.with_draw(draw(seed)))

    def named(self, patterns: Sequence[str], disabled: Sequence[str] = ()) -> ToolSelection:
        """Just the tools that these patterns name: no draw, and none that is always on."""
        return self._kept(self._registry.select(patterns, disabled))

    def _kept(self, tools: Sequence[Tool]) -> ToolSelection:
        key = tuple(id(tool) for tool in tools)  # the registry keeps its tools alive, so an id names one
        selection = self._selections.get(key)
        if selection is None:
            selection = self._selections[key] = ToolSelection.of(tools, external=self._permissions.wants_confirmation)
            if len(self._selections) > SELECTIONS_KEPT:
                self._selections.popitem(last=False)
        else:
            self._selections.move_to_end(key)
        return selection

    def _offer(self, patterns: tuple[str, ...] | None, disabled: tuple[str, ...]) -> tuple[Offer, Draw | None]:
        known = self._offers.get((patterns, disabled))
        if known is None:
            if len(self._offers) >= SELECTIONS_KEPT:
                self._offers.clear()
            offered = offer(self._registry, patterns, disabled)
            draw = None if self._sampler is None else self._sampler.for_job(offered.chosen)
            known = self._offers[patterns, disabled] = (offered, draw)
        return known


def _one_of(names: Iterable[str]) -> IsExternal:
    external = frozenset(names)
    return lambda call: call.qualified_name in external


def _refuse_twins(tools: Sequence[Tool]) -> None:
    kept: dict[str, list[Tool]] = {}
    for tool in tools:
        same = kept.setdefault(tool.qualified_name, [])
        if any(tool.parameters == other.parameters for other in same):
            raise ToolsInvalid(f"the tool {tool.qualified_name!r} is there twice; give one of them another name")
        same.append(tool)


def _named_function(tool_choice: Any) -> str:
    function = tool_choice.get("function") if isinstance(tool_choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        raise ToolChoiceInvalid(
            f'tool_choice: {tool_choice!r} is none; write "auto", "none", "required", a tool such as "ns::tool", '
            'or {"type": "function", "function": {"name": "ns::tool"}}'
        )
    return name
