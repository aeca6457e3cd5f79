"""What a conversation offers as it goes: the tools it began with, those added since, less those removed (rule A16)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conversations.errors import ToolsInvalid
from conversations.selection import ToolSelection
from conversations.state import State
from engines.nearest import hint
from engines.tool import Tool, ToolCall
from engines.tool_settings import CONFIRM, EXTERNAL

_ADDED, _REMOVED = "added", "removed"


class OfferedTools:
    """The tools of one conversation; what changes is kept in `state.offered`: `{"added": [definition], "removed"}`.

    A call of a tool that was removed is one of an unknown tool. Wire names never change: the history holds them.
    """

    def __init__(self, base: ToolSelection, state: State, *, catalogue: Iterable[Tool] = ()) -> None:
        """`base` is what it began with, `catalogue` what may be added by name."""
        self._base, self._state = base, state
        self._catalogue = {tool.qualified_name: tool for tool in catalogue}
        self.now = offered_now(base, state.offered)

    def add(self, tools: Iterable[Tool | str]) -> None:
        """Offer more: a tool, or the name of one that was removed or is in the catalogue.

        ToolsInvalid, and no change, for one that is offered by now (rule A17) and for a name that nothing has.
        """
        added, removed = _changes(self._state.offered)
        for each in tools:
            tool = self._meant(each) if isinstance(each, str) else each
            name = tool.qualified_name
            if (name in self.now.offered or name in added) and name not in removed:
                raise ToolsInvalid(f"the tool {name!r} is offered already; remove it first to put another in its place")
            removed.discard(name)
            if tool not in self._base.tools:
                added[name] = tool
            else:
                added.pop(name, None)
        self._keep(added, removed)

    def remove(self, names: Iterable[str]) -> None:
        """Offer these no more: wire names, `ns::tool`, or bare names; ToolsInvalid for what is not offered."""
        added, removed = _changes(self._state.offered)
        for name in names:
            qualified = self.now.qualified(name)
            if qualified is None:
                raise ToolsInvalid(f"no tool {name!r} is offered; {hint(name, sorted(self.now.offered))}")
            removed.add(qualified)
        self._keep(added, removed)

    def replace(self, tools: Sequence[Tool | str]) -> None:
        """Offer these and no others."""
        wanted = [self._meant(each) if isinstance(each, str) else each for each in tools]
        names = {tool.qualified_name for tool in wanted}
        added, _ = _changes(self._state.offered)
        added = {name: tool for name, tool in added.items() if name not in names}
        for tool in wanted:
            if tool not in self._base.tools and added.setdefault(tool.qualified_name, tool) is not tool:
                raise ToolsInvalid(f"the tool {tool.qualified_name!r} is there twice; give one of them another name")
        self._keep(added, self._base.offered.union(added) - names)

    def _meant(self, name: str) -> Tool:
        known = ever_offered(self._base, self._state.offered)
        qualified = known.qualified(name)
        if qualified is not None:
            return next(tool for tool in known.tools if tool.qualified_name == qualified)
        meant = [tool for key, tool in self._catalogue.items() if name in {key, tool.name}]
        if len(meant) != 1:
            raise ToolsInvalid(f"no tool {name!r} can be added; {hint(name, [*self._catalogue, *known.offered])}")
        return meant[0]

    def _keep(self, added: Mapping[str, Tool], removed: Iterable[str]) -> None:
        kept: dict[str, Any] = {
            _ADDED: [tool.to_dict() for tool in added.values()],
            _REMOVED: sorted(removed),
        }
        self._state.note_offered({key: value for key, value in kept.items() if value})
        self.now = offered_now(self._base, self._state.offered)


def offered_now(base: ToolSelection, kept: Mapping[str, Any]) -> ToolSelection:
    """What is offered after the changes that a state keeps; `base` itself where there are none."""
    if not kept:
        return base
    added, removed = _changes(kept)
    return _changed(base, added, removed)


def ever_offered(base: ToolSelection, kept: Mapping[str, Any]) -> ToolSelection:
    """Every tool that was offered at some time: what the calls of a history may name, and what its record shows."""
    if not kept.get(_ADDED):
        return base
    return _changed(base, _changes(kept)[0], frozenset())


def _changes(kept: Mapping[str, Any]) -> tuple[dict[str, Tool], set[str]]:
    """The tools that were added, by qualified name, and the names of those that are removed."""
    tools = [Tool.from_dict(definition) for definition in kept.get(_ADDED, ())]
    return {tool.qualified_name: tool for tool in tools}, set(kept.get(_REMOVED, ()))


def _changed(base: ToolSelection, added: Mapping[str, Tool], removed: set[str] | frozenset[str]) -> ToolSelection:
    names = base.names
    for tool in added.values():
        names = names.with_tool(tool)
    known = [*(tool for tool in base.tools if tool.qualified_name not in added), *added.values()]
    waiting = {name for name, tool in added.items() if tool.metadata.get(EXTERNAL) or tool.metadata.get(CONFIRM)}

    def is_external(call: ToolCall) -> bool:
        return call.qualified_name in waiting or base.external(call)

    return ToolSelection.of(
        [tool for tool in known if tool.qualified_name not in removed], external=is_external, names=names
    )
