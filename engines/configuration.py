"""The `tools:` block of a recipe, as written: what is loaded, by which engine it is answered, how it is sampled."""

from typing import Annotated, Any, Literal, Self

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
    external: bool | None = None
    takes_control: bool | None = None
    system_prompt: str | None = None
    user_prompt: str | None = None
    evaluation_checks: tuple[str, ...] | None = None
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
    """Offer each job exactly `k` tools drawn by its seed; `namespace` keeps the draw to one namespace.

    For `tc/random`, `namespace_weights` and `strategy` share the places out; the others follow what an enrichment
    found, and take nothing that scores less than `min_score` (rules D80-D83).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["tc/random", "tc/chain", "tc/fan_out", "tc/fan_in", "tc/dag", "tc/neighbor"]
    k: int = Field(ge=1)
    namespace: str | None = None
    namespace_weights: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None = None
    strategy: Literal["proportional", "uniform"] = "proportional"
    min_score: float = Field(default=0.0, ge=0, le=1)

    @model_validator(mode="after")
    def _keys_mean_something(self) -> Self:
        for name in ("min_score",) if self.type == "tc/random" else ("namespace_weights", "strategy"):
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} means nothing to {self.type}; remove it")
        if self.k < _LEAST_TOOLS.get(self.type, 1):
            raise ValueError(f"{self.type} draws at least {_LEAST_TOOLS[self.type]} tools; raise k")
        if self.namespace_weights is not None and not any(self.namespace_weights.values()):
            raise ValueError("namespace_weights must have a weight above 0")
        return self


_LEAST_TOOLS = {"tc/fan_out": 2, "tc/fan_in": 2, "tc/dag": 2, "tc/neighbor": 2}


class ToolsConfiguration(BaseModel):
    """The whole block; a list stands for its `registry` alone (rule D65)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    registry: tuple[JSONObject, ...] = ()
    enrichments: tuple[JSONObject, ...] = ()
    engines: dict[str, JSONObject] = Field(default_factory=dict)
    namespaces: dict[str, NamespaceSettings] = Field(default_factory=dict)
    sample: SampleSettings | None = None
    artifacts: JSONObject = Field(default_factory=dict)
    """What the enrichments found and the draws need: written by submit, for the workers."""
    permissions: PermissionSettings = Field(default_factory=PermissionSettings)

    @model_validator(mode="before")
    @classmethod
    def _list_is_registry(cls, data: Any) -> Any:
        if data is None:
            return {}
        return {"registry": data} if isinstance(data, list | tuple) else data
