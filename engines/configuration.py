"""The `tools:` block of a recipe, as written: what is loaded, by which engine it is answered, how it is sampled."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from engines.plain import JSONObject
from engines.toolset import CacheSettings, ToolDefaults


class ToolSettings(BaseModel):
    """What a recipe says of one tool over what its loader found; None leaves it as it was loaded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    exclusive: bool | None = None
    always_on: bool | None = None
    confirm: bool | None = None
    read_only: bool | None = None
    idempotent: bool | None = None
    description: str | None = None
    defaults: JSONObject | None = None


class NamespaceSettings(BaseModel):
    """What holds for one namespace; `max_concurrency` counts conversations in the whole cluster (rule D68)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    stateful: bool = False
    max_concurrency: int | None = Field(default=None, ge=1)
    defaults: ToolDefaults = Field(default_factory=ToolDefaults)
    simulate: str | None = Field(default=None, min_length=1)
    cache: CacheSettings | None = None
    tools: dict[str, ToolSettings] = Field(default_factory=dict)


class PermissionRule(BaseModel):
    """A pattern (`ns::tool` or `ns::*`, `*` for all) and, if given, a JSON Schema that the arguments must fit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: str = Field(min_length=1)
    arguments: JSONObject | None = None

    @model_validator(mode="before")
    @classmethod
    def _text_is_a_pattern(cls, data: Any) -> Any:
        return {"tool": data} if isinstance(data, str) else data


class PermissionSettings(BaseModel):
    """Which calls may be made: `deny` wins over `allow`; with an `allow` list, what it does not name is denied.

    A call that `confirm` names is not run by an engine: it waits for somebody outside, as an external call does.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    allow: tuple[PermissionRule, ...] | None = None
    deny: tuple[PermissionRule, ...] = ()
    confirm: tuple[PermissionRule, ...] = ()


class SampleSettings(BaseModel):
    """Offer each job `k` tools drawn by its seed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["tc/random"]
    k: int = Field(ge=1)
    namespace: str | None = None


class ToolsConfiguration(BaseModel):
    """The whole block; a list stands for its `registry` alone (rule D65)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    registry: tuple[JSONObject, ...] = ()
    enrichments: tuple[JSONObject, ...] = ()
    engines: dict[str, JSONObject] = Field(default_factory=dict)
    namespaces: dict[str, NamespaceSettings] = Field(default_factory=dict)
    sample: SampleSettings | None = None
    permissions: PermissionSettings = Field(default_factory=PermissionSettings)

    @model_validator(mode="before")
    @classmethod
    def _list_is_registry(cls, data: Any) -> Any:
        if data is None:
            return {}
        return {"registry": data} if isinstance(data, list | tuple) else data
