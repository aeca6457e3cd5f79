"""The `tools:` block of a recipe, as written: what is loaded, by which engine it is answered, how it is sampled."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from engines.plain import JSONObject
from engines.toolset import ToolDefaults


class NamespaceSettings(BaseModel):
    """What holds for one namespace; `max_concurrency` counts conversations in the whole cluster (rule D68)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stateful: bool = False
    max_concurrency: int | None = Field(default=None, ge=1)
    defaults: ToolDefaults = Field(default_factory=ToolDefaults)


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

    @model_validator(mode="before")
    @classmethod
    def _list_is_registry(cls, data: Any) -> Any:
        if data is None:
            return {}
        return {"registry": data} if isinstance(data, list | tuple) else data
