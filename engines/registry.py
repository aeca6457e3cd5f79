"""Every tool of a run, by name, by namespace and by the patterns of a job line."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from engines.errors import ConfigurationInvalid, DuplicateTool, InvalidTool
from engines.matching import best_match
from engines.nearest import hint
from engines.plain import JSONObject
from engines.tool import TOOL_NAMESPACE_SEP, Tool, ToolCall
from engines.toolset import Toolset

_EVERYTHING = f"{TOOL_NAMESPACE_SEP}*"


class ToolRegistry:
    """The tools of all toolsets; unique by namespace, name and parameters (rule D69)."""

    def __init__(self, toolsets: Iterable[Toolset], *, reload: Callable[[], Iterable[Toolset]] | None = None) -> None:
        """`reload` runs the loaders again, for `refresh`."""
        self._reload = reload
        self._take_over(toolsets)

    def refresh(self) -> None:
        """Run the loaders again and take over what they find; when one fails, everything stays as it was (rule D75)."""
        if self._reload is None:
            warnings.warn("this registry was made without loaders: nothing to refresh", UserWarning, stacklevel=2)
            return
        self._take_over(self._reload())

    def _take_over(self, toolsets: Iterable[Toolset]) -> None:
        by_namespace: dict[str, Toolset] = {}
        by_name: dict[str, tuple[Tool, ...]] = {}
        for toolset in toolsets:
            if toolset.namespace in by_namespace:
                raise DuplicateTool(f"namespace {toolset.namespace!r} has two toolsets; make them one")
            by_namespace[toolset.namespace] = toolset
            for tool in toolset.tools:
                by_name[tool.qualified_name] = _overloads(by_name.get(tool.qualified_name, ()), tool, toolset)
        self.toolsets: Mapping[str, Toolset] = MappingProxyType(by_namespace)
        self._by_name = by_name
        self._all = tuple(tool for toolset in by_namespace.values() for tool in toolset.tools)

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
        return list(self.toolsets.values()) == list(other.toolsets.values())

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
        """Return the tools that `ns::tool` and `ns::*` patterns name (None: all) less the disabled, in registry order.

        ConfigurationInvalid names the nearest tool for a pattern that names none: a typo must not go unnoticed.
        """
        if patterns is None and not disabled:
            return list(self._all)
        chosen = set(self._by_name) if patterns is None else self._named(patterns, "tools")
        chosen -= self._named(disabled, "disabled_tools")
        return [tool for tool in self._all if tool.qualified_name in chosen]

    def _named(self, patterns: Sequence[str], key: str) -> set[str]:
        names: set[str] = set()
        for pattern in patterns:
            namespace = pattern.removesuffix(_EVERYTHING)
            if namespace != pattern and namespace in self.toolsets:
                names.update(tool.qualified_name for tool in self.toolsets[namespace].tools)
            elif pattern in self._by_name:
                names.add(pattern)
            else:
                known = [*self._by_name, *(name + _EVERYTHING for name in self.toolsets)]
                raise ConfigurationInvalid(f"{key}: no tool {pattern!r}; {hint(pattern, known)}")
        return names


def _overloads(known: tuple[Tool, ...], tool: Tool, toolset: Toolset) -> tuple[Tool, ...]:
    """Return the known overloads and one more; refuses the same one twice and a tool in another's toolset."""
    if tool.namespace != toolset.namespace:
        raise InvalidTool(f"tool {tool.qualified_name!r} stands in the toolset {toolset.namespace!r}")
    if known and tool.fingerprint in {other.fingerprint for other in known}:
        raise DuplicateTool(f"tool {tool.qualified_name!r} is defined twice with the same parameters; remove one")
    return (*known, tool)
