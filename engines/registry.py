"""Every tool of a run, by name, by namespace and by the patterns of a job line."""

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from engines.calling.matching import best_match
from engines.errors import DuplicateTool, InvalidTool
from engines.name_patterns import KnownNames
from engines.nearest import hint
from engines.plain import JSONObject
from engines.tool import Tool, ToolCall
from engines.toolset import Toolset

Enrich = Callable[[Sequence[Toolset]], tuple[Sequence[Toolset], Mapping[str, Any]]]
"""From what the loaders found to the same tools, perhaps with more in them, and the artifacts by key."""


class ToolRegistry:
    """The tools of all toolsets; unique by namespace, name and parameters (rule D69).

    A toolset without tools whose tools are all switched off is known by name only.
    """

    def __init__(
        self,
        toolsets: Iterable[Toolset],
        *,
        reload: Callable[[], Iterable[Toolset]] | None = None,
        enrich: Enrich | None = None,
    ) -> None:
        """`reload` runs the loaders again, for `refresh`; `enrich` works out the artifacts of what they find."""
        self._reload = reload
        self._enrich = enrich
        self._edits: list[Callable[[dict[str, Toolset]], None]] = []
        self._load(toolsets)

    def refresh(self) -> None:
        """Run the loaders and enrichments again; when one fails, everything stays as it was (rule D75).

        Tools that were added or excluded by hand are so again.
        """
        if self._reload is None:
            warnings.warn("this registry was made without loaders: nothing to refresh", UserWarning, stacklevel=2)
            return
        self._load(self._reload())

    def _load(self, toolsets: Iterable[Toolset]) -> None:
        enriched, artifacts = (toolsets, {}) if self._enrich is None else self._enrich(tuple(toolsets))
        self._take_over(enriched)
        self.artifacts: Mapping[str, Any] = MappingProxyType(dict(artifacts))

    def add_tool(self, tool: Tool, *, engine: str | None = None) -> None:
        """Put a tool that was made elsewhere into its namespace (rule U7); DuplicateTool when it is there already.

        `engine` answers a namespace that this begins. To be done before the engines are built.
        """

        def add(toolsets: dict[str, Toolset]) -> None:
            there = toolsets.get(tool.namespace) or Toolset(tool.namespace, engine, ())
            toolsets[tool.namespace] = replace(there, tools=(*there.tools, tool), disabled=there.disabled - {tool.name})

        self._edit(add)

    def exclude_tool(self, name: str) -> bool:
        """Take a tool out, all its overloads with it (rule U7); whether it was there. Afterwards it is switched off."""
        names = self.names.means(name)
        if not names:
            return False

        def exclude(toolsets: dict[str, Toolset]) -> None:
            for namespace, there in toolsets.items():
                out = {tool.name for tool in there.tools if tool.qualified_name in names}
                tools = tuple(tool for tool in there.tools if tool.name not in out)
                toolsets[namespace] = replace(there, tools=tools, disabled=there.disabled | out)

        self._edit(exclude)
        return True

    def _edit(self, edit: Callable[[dict[str, Toolset]], None]) -> None:
        self._edits.append(edit)
        try:
            self._take_over(self._as_loaded)
        except (DuplicateTool, InvalidTool):
            self._edits.pop()
            raise

    def _take_over(self, toolsets: Iterable[Toolset]) -> None:
        as_loaded = tuple(toolsets)
        by_namespace: dict[str, Toolset] = {}
        for toolset in as_loaded:
            if toolset.namespace in by_namespace:
                raise DuplicateTool(f"namespace {toolset.namespace!r} has two toolsets; make them one")
            by_namespace[toolset.namespace] = toolset
        for edit in self._edits:
            edit(by_namespace)
        by_name: dict[str, tuple[Tool, ...]] = {}
        for toolset in by_namespace.values():
            for tool in toolset.tools:
                by_name[tool.qualified_name] = _overloads(by_name.get(tool.qualified_name, ()), tool, toolset)
        self._as_loaded = as_loaded
        self._by_name = by_name
        self.toolsets: Mapping[str, Toolset] = MappingProxyType(
            {name: toolset for name, toolset in by_namespace.items() if toolset.tools or not toolset.disabled}
        )
        self._all = tuple(tool for toolset in self.toolsets.values() for tool in toolset.tools)
        self.names = KnownNames(
            there={name: tuple(dict.fromkeys(tool.name for tool in own.tools)) for name, own in self.toolsets.items()},
            off={name: toolset.disabled for name, toolset in by_namespace.items() if toolset.disabled},
        )

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._all)

    def __contains__(self, tool: object) -> bool:
        """Whether a tool, or a tool of this qualified name, is here."""
        if isinstance(tool, Tool):
            return tool in self._by_name.get(tool.qualified_name, ())
        return tool in self._by_name

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ToolRegistry):
            return NotImplemented
        return list(self.toolsets.values()) == list(other.toolsets.values()) and self.names == other.names

    __hash__ = None  # type: ignore[assignment]  # Equal by content, as a dict is.

    def get(self, qualified_name: str) -> Tool:
        """Return the tool, the first of its overloads; KeyError names the nearest."""
        return self.overloads(qualified_name)[0]

    def overloads(self, qualified_name: str) -> tuple[Tool, ...]:
        """Return every tool of this name; KeyError names the nearest."""
        found = self._by_name.get(qualified_name)
        if found is None:
            raise KeyError(f"no tool {qualified_name!r}; {hint(qualified_name, self._by_name)}")
        return found

    def get_by_name(self, name: str) -> list[Tool]:
        """Return the tools of this unqualified name in every namespace; KeyError when there are none."""
        found = [tool for tool in self._all if tool.name == name]
        if not found:
            names = (tool.name for tool in self._all)
            raise KeyError(f"no tool named {name!r} in any namespace; {hint(name, names)}")
        return found

    def get_by_fingerprint(self, qualified_name: str, fingerprint: str) -> Tool:
        """Return the one overload with these parameters; KeyError when there is none."""
        for tool in self.overloads(qualified_name):
            if tool.fingerprint == fingerprint:
                return tool
        raise KeyError(f"no overload of {qualified_name!r} has the fingerprint {fingerprint}")

    @property
    def has_overloads(self) -> bool:
        """Whether any name stands for several tools."""
        return len(self._by_name) < len(self._all)

    def all_tools(self) -> tuple[Tool, ...]:
        """Return every tool, in the order of the toolsets."""
        return self._all

    def namespaces(self) -> list[str]:
        """Return the namespaces, in order."""
        return list(self.toolsets)

    def tool_names(self) -> list[str]:
        """Return the qualified names, sorted, overloads once."""
        return sorted(self._by_name)

    def to_dicts(self) -> list[JSONObject]:
        """Return every definition under its qualified name."""
        return [tool.to_dict() for tool in self._all]

    def match(self, call: ToolCall, namespaces: Iterable[str] | None = None) -> Tool | None:
        """Return the overload that fits a call best, None when no tool of these namespaces has its name (rule D70)."""
        if namespaces is not None and call.namespace not in set(namespaces):
            return None
        return best_match(self._by_name.get(call.qualified_name, ()), call.arguments)

    def select(self, patterns: Sequence[str] | None, disabled: Sequence[str] = ()) -> list[Tool]:
        """Return the tools that the patterns name (None: all) less the disabled, in registry order.

        ConfigurationInvalid names the nearest tool for a pattern that names none: a typo must not go unnoticed.
        """
        if patterns is None and not disabled:
            return list(self._all)
        chosen = set(self._by_name) if patterns is None else self.names.named(patterns, "tools")
        chosen -= self.names.named(disabled, "disabled_tools")
        return [tool for tool in self._all if tool.qualified_name in chosen]

    def filter_calls(self, calls: Iterable[ToolCall], sources: Collection[str]) -> list[ToolCall]:
        """Return the calls of tools from these kinds of sources: `mcp`, `openapi`, `python`, … (rule U8)."""
        return [call for call in calls if (tool := self.match(call)) is not None and source_of(tool) in sources]


def source_of(tool: Tool) -> str:
    """Return the kind of registry entry that a tool came from; `definition` for one that somebody wrote down."""
    return str(tool.metadata.get("source", "definition"))


def _overloads(known: tuple[Tool, ...], tool: Tool, toolset: Toolset) -> tuple[Tool, ...]:
    """Return the known overloads and one more; refuses the same one twice and a tool in another's toolset."""
    if tool.namespace != toolset.namespace:
        raise InvalidTool(f"tool {tool.qualified_name!r} stands in the toolset {toolset.namespace!r}")
    if known and tool.fingerprint in {other.fingerprint for other in known}:
        raise DuplicateTool(f"tool {tool.qualified_name!r} is defined twice with the same parameters; remove one")
    return (*known, tool)
