"""A recipe: how the conversations of a run are made. What it says, checked; its references are not yet resolved."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from conversations.errors import RecipeInvalid
from conversations.messages import JSONObject
from conversations.models.settings import ModelSettings
from conversations.policy.limits import Limits
from conversations.references import has_reference, resolve_references, written
from engines.configuration import ToolsConfiguration


class ConversationSettings(BaseModel):
    """The loop: what the model is told first, and how long it may go on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str | None = None
    max_turns: int = Field(default=20, ge=1)
    max_tool_calls: int = Field(default=10, ge=1)
    on_max_turns: Literal["error", "answer"] = "error"
    tool_choice: str | JSONObject | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_no_simulated_user(cls, data: Any) -> Any:
        if isinstance(data, dict) and "user" in data:
            raise ValueError("`user` (a simulated user) is not available in this version; remove it")
        return data


class LimitSettings(BaseModel):
    """Budgets of one job (rule S19); None means none. `max_attempts` counts starts of a job, crashes included."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_attempts: int = Field(default=3, ge=1)
    max_seconds: float | None = Field(default=None, gt=0)
    max_total_tokens: int | None = Field(default=None, ge=1)
    max_total_tool_calls: int | None = Field(default=None, ge=0)


class Recipe(BaseModel):
    """The whole file. `model` is kept as written; `model_settings` gives what it means where it is used."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str | None = Field(default=None, min_length=1, max_length=100)
    seed: int = 0
    model: JSONObject
    conversation: ConversationSettings = ConversationSettings()
    tools: ToolsConfiguration = ToolsConfiguration()
    limits: LimitSettings = LimitSettings()

    @field_validator("model")
    @classmethod
    def _model_is_known(cls, model: JSONObject) -> JSONObject:
        """Check what is known now; what hangs on a reference is checked once it is resolved."""
        try:
            ModelSettings.model_validate(model)
        except ValidationError as error:
            known_now = [line for line in error.errors(include_url=False) if not _hangs_on_reference(model, line["loc"])]
            if known_now:
                raise ModelBlockInvalid(known_now) from None
        return model
