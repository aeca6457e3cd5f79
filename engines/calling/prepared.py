"""A tool made ready to be called: validator, defaults and limits worked out once, not per call."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self

from engines.calling.matching import best_match
from engines.calling.schema_defaults import SchemaDefaults, has_defaults
from engines.plain import JSONObject
from engines.schemas import Validator, compiled, problems
from engines.tool import Tool, ToolCall
from engines.toolset import ToolDefaults, Toolset

_SAFE_HTTP_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_IDEMPOTENT_HTTP_METHODS = _SAFE_HTTP_METHODS | {"PUT", "DELETE"}


@dataclass(frozen=True, slots=True)
class PreparedTool:
    """One tool with everything a call of it needs."""

    tool: Tool
    toolset: Toolset
    validator: Validator
    schema_defaults: SchemaDefaults | None
    defaults: ToolDefaults
    is_read_only: bool
    is_idempotent: bool
    depends_on_session: bool
    """Whether a result depends on the calls before: then they keep their order, and no result is for others."""

    @classmethod
    def of(cls, tool: Tool, toolset: Toolset, *, depends_on_session: bool = True) -> Self:
        """Compile a tool of a toolset; InvalidTool when its schema or its own defaults cannot be used."""
        return cls(
            tool=tool,
            toolset=toolset,
            validator=compiled(tool.parameters),
            schema_defaults=SchemaDefaults(tool.parameters) if has_defaults(tool.parameters) else None,
            defaults=toolset.defaults_for(tool),
            is_read_only=is_read_only(tool),
            is_idempotent=is_idempotent(tool),
            depends_on_session=depends_on_session,
        )

    @property
    def may_overlap(self) -> bool:
        """Whether its calls may run beside others of their batch (rule A11): not where a failure ends the turn."""
        return not self.depends_on_session and self.defaults.on_error == "result"

    @property
    def is_cached(self) -> bool:
        """Whether its results are kept for other calls."""
        return self.toolset.cache is not None and self.is_read_only and not self.depends_on_session

    def arguments_for(self, given: JSONObject) -> tuple[JSONObject, str]:
        """Return (arguments with schema defaults, what is wrong with them or ""); nothing is coerced (decision 7)."""
        filled = given if self.schema_defaults is None else self.schema_defaults.put_into(given)
        problem = problems(self.validator, filled)
        if problem and filled is not given and not problems(self.validator, given):
            return given, ""  # The schema's own defaults break it (`type: string, default: null` is common).
        return filled, problem

    def filled(self, given: JSONObject) -> JSONObject:
        """Return the arguments as a call of the tool is made with them."""
        return given if self.schema_defaults is None else self.arguments_for(given)[0]


class PreparedTools:
    """The tools of an engine by qualified name, overloads under one."""

    def __init__(self, toolsets: Iterable[Toolset], depends_on_session: Callable[[Tool, Toolset], bool]) -> None:
        self._by_name: dict[str, tuple[PreparedTool, ...]] = {}
        for toolset in toolsets:
            for tool in toolset.tools:
                prepared = PreparedTool.of(tool, toolset, depends_on_session=depends_on_session(tool, toolset))
                self._by_name[tool.qualified_name] = (*self._by_name.get(tool.qualified_name, ()), prepared)

    def __iter__(self) -> Iterator[PreparedTool]:
        return (prepared for overloads in self._by_name.values() for prepared in overloads)

    @property
    def names(self) -> Iterable[str]:
        """The qualified names."""
        return self._by_name

    def match(self, call: ToolCall) -> PreparedTool | None:
        """Return the tool that a call means, the best of its overloads."""
        overloads = self._by_name.get(call.qualified_name, ())
        if len(overloads) <= 1:
            return overloads[0] if overloads else None
        best = best_match([prepared.tool for prepared in overloads], call.arguments)
        return next(prepared for prepared in overloads if prepared.tool is best)


def is_read_only(tool: Tool) -> bool:
    """Whether a tool is known to change nothing: its metadata says so, else MCP's hint, else the method is a GET."""
    return _said(tool, "read_only", "readOnlyHint", _SAFE_HTTP_METHODS) is True


def is_writer(tool: Tool) -> bool:
    """Whether a tool is known to change something; of many tools neither this nor the other is known."""
    return _said(tool, "read_only", "readOnlyHint", _SAFE_HTTP_METHODS) is False


def is_idempotent(tool: Tool) -> bool:
    """Whether running a tool twice is as good as once, so that a lost reply may be asked for again (rule D59)."""
    if tool.metadata.get("idempotent") is False:
        return False
    return _said(tool, "idempotent", "idempotentHint", _IDEMPOTENT_HTTP_METHODS) is True or is_read_only(tool)


def _said(tool: Tool, key: str, hint: str, methods: frozenset[str]) -> bool | None:
    """Return what is said about a tool, the recipe's own word first; None when nothing is."""
    for said in (tool.metadata.get(key), (tool.metadata.get("annotations") or {}).get(hint)):
        if isinstance(said, bool):
            return said
    method: Any = tool.metadata.get("rest_method")
    return None if method is None else str(method).upper() in methods
