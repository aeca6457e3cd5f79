"""A tool made ready to be called: validator, defaults and limits worked out once, not per call."""

from dataclasses import dataclass
from typing import Self

from engines.plain import JSONObject
from engines.schema_defaults import SchemaDefaults, has_defaults
from engines.schemas import Validator, compiled, problems
from engines.tool import Tool
from engines.toolset import ToolDefaults, Toolset

_SAFE_HTTP_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_IDEMPOTENT_HTTP_METHODS = _SAFE_HTTP_METHODS | {"PUT", "DELETE"}


@dataclass(frozen=True, slots=True)
class PreparedTool:
    """One tool with everything a call of it needs."""

    tool: Tool
    validator: Validator
    schema_defaults: SchemaDefaults | None
    defaults: ToolDefaults
    is_idempotent: bool

    @classmethod
    def of(cls, tool: Tool, toolset: Toolset) -> Self:
        """Compile a tool of a toolset; InvalidTool when its schema or its own defaults cannot be used."""
        return cls(
            tool=tool,
            validator=compiled(tool.parameters),
            schema_defaults=SchemaDefaults(tool.parameters) if has_defaults(tool.parameters) else None,
            defaults=toolset.defaults_for(tool),
            is_idempotent=is_idempotent(tool),
        )

    def arguments_for(self, given: JSONObject) -> tuple[JSONObject, str]:
        """Return (arguments with schema defaults, what is wrong with them or ""); nothing is coerced (decision 7)."""
        filled = given if self.schema_defaults is None else self.schema_defaults.put_into(given)
        problem = problems(self.validator, filled)
        if problem and filled is not given and not problems(self.validator, given):
            return given, ""  # The schema's own defaults break it (`type: string, default: null` is common).
        return filled, problem


def is_read_only(tool: Tool) -> bool:
    """Whether a tool is known to change nothing: said so in its metadata, by MCP's hint, or a GET."""
    metadata = tool.metadata
    hints = metadata.get("annotations") or {}
    return bool(
        metadata.get("read_only") is True
        or hints.get("readOnlyHint") is True
        or str(metadata.get("rest_method", "")).upper() in _SAFE_HTTP_METHODS
    )


def is_idempotent(tool: Tool) -> bool:
    """Whether running a tool twice is as good as once, so that a lost reply may be asked for again (rule D59)."""
    metadata = tool.metadata
    hints = metadata.get("annotations") or {}
    return bool(
        is_read_only(tool)
        or metadata.get("idempotent") is True
        or hints.get("idempotentHint") is True
        or str(metadata.get("rest_method", "")).upper() in _IDEMPOTENT_HTTP_METHODS
    )
