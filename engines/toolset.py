"""A namespace: its tools, the engine that answers them, and how their calls are run."""

from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engines.errors import InvalidTool
from engines.tool import Tool


class ToolDefaults(BaseModel):
    """How calls are run; a tool's `metadata.defaults` overrides its toolset's (decision 10, rule E10).

    `on_error: raise` ends the conversation when a call fails otherwise than by its arguments or its deadline (E13).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    timeout_seconds: float = Field(default=30.0, gt=0, allow_inf_nan=False)
    max_retries: int = Field(default=0, ge=0, le=20)
    on_error: Literal["result", "raise"] = "result"
    max_result_chars: int | None = Field(default=None, ge=1)


class CacheSettings(BaseModel):
    """Keep the results of a toolset's read-only tools; `version` is part of the key, so raising it forgets them all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ttl_seconds: float = Field(default=3600.0, gt=0)
    max_entries: int = Field(default=10_000, ge=1)
    max_result_bytes: int = Field(default=64 << 10, ge=1)
    shared: bool = False
    version: str = ""


EXTERNAL_ENGINE = "external"
"""The engine that a namespace names when somebody outside answers its calls: no engine is built for it."""


@dataclass(frozen=True, slots=True)
class Toolset:
    """The tools of one namespace."""

    namespace: str
    engine: str | None
    tools: tuple[Tool, ...]
    defaults: ToolDefaults = field(default_factory=ToolDefaults)
    stateful: bool = False
    max_concurrency: int | None = None
    simulate: str | None = None
    """What stands in for this toolset's writers when calls are simulated: `live`, `refuse`, or an lm engine's name."""
    cache: CacheSettings | None = None
    disabled: frozenset[str] = frozenset()
    """Names of tools that are known and switched off, so that nobody is offered them; `*`: the whole namespace."""

    def defaults_for(self, tool: Tool) -> ToolDefaults:
        """Return the toolset's defaults with the tool's own over them; InvalidTool for one that is none."""
        own = tool.metadata.get("defaults")
        if own is None:
            return self.defaults
        try:
            return ToolDefaults.model_validate({**self.defaults.model_dump(), **own})
        except (ValidationError, TypeError) as error:
            raise InvalidTool(f"tool {tool.qualified_name!r}: metadata.defaults: {error}") from error
