"""A recipe: how the conversations of a run are made. What it says, checked; its references are not yet resolved."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from conversations.errors import RecipeInvalid
from conversations.messages import JSONObject
from conversations.models.settings import ModelChoice, model_choice
from conversations.places import Place, followed, written
from conversations.policy.limits import Limits
from conversations.references import Reference, has_reference, references_in, resolve_references
from engines.configuration import ToolsConfiguration

_Block = TypeVar("_Block", bound=BaseModel)


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
            later = PydanticCustomError("later", "a simulated user is not available in this version; remove it")
            raise ValidationError.from_exception_data("user", [InitErrorDetails(type=later, loc=("user",), input=None)])
        return data


class LimitSettings(BaseModel):
    """Budgets of one job (rule S19); None means none. `max_attempts` counts starts of a job, crashes included."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_attempts: int = Field(default=3, ge=1)
    max_seconds: float | None = Field(default=None, gt=0)
    max_total_tokens: int | None = Field(default=None, ge=1)
    max_total_tool_calls: int | None = Field(default=None, ge=0)


class Recipe(BaseModel):
    """The whole file; `model` and `tools` are kept as written, references and all, until a worker needs them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str | None = Field(default=None, min_length=1, max_length=100)
    seed: int = 0
    model: JSONObject
    conversation: ConversationSettings = ConversationSettings()
    tools: ToolsConfiguration = ToolsConfiguration()
    limits: LimitSettings = LimitSettings()

    @field_validator("model")
    @classmethod
    def _is_known_as_far_as_written(cls, model: JSONObject) -> JSONObject:
        """What hangs on a reference can only be checked where it is resolved; all else is checked here."""
        try:
            model_choice(model)
        except ValidationError as error:
            lines = error.errors(include_url=False)
            known_now = [line for line in lines if not has_reference(_value_at(model, line["loc"]))]
            if known_now:
                details = [
                    InitErrorDetails(type=_error_type(line), loc=line["loc"], input=None, ctx=line.get("ctx", {}))
                    for line in known_now
                ]
                raise ValidationError.from_exception_data("model", details, hide_input=True) from None
        return model

    def model_settings(
        self, environment: Mapping[str, str], read_file: Callable[[str], str] | None = None
    ) -> ModelChoice:
        """The model block with its references resolved; RecipeInvalid never shows a value."""
        return _validated(model_choice, self.model, "model", environment, read_file)

    def tools_configuration(
        self, environment: Mapping[str, str], read_file: Callable[[str], str] | None = None
    ) -> ToolsConfiguration:
        """The tools block with its references resolved; the tool definitions in it stay as they are."""
        return _validated(
            ToolsConfiguration.model_validate, self.tools.model_dump(mode="json"), "tools", environment, read_file
        )

    def loop_limits(self, max_turns: int | None = None) -> Limits:
        """The limits of one conversation; a job's own `max_turns` wins."""
        return Limits(
            max_turns=max_turns or self.conversation.max_turns,
            max_tool_calls=self.conversation.max_tool_calls,
            on_max_turns=self.conversation.on_max_turns,
            max_total_tool_calls=self.limits.max_total_tool_calls,
            max_total_tokens=self.limits.max_total_tokens,
            max_seconds=self.limits.max_seconds,
        )


def find_references(recipe: Recipe) -> list[Reference]:
    """Every reference of a recipe, in the order of the file: what the workers must be able to resolve."""
    blocks = {"model": recipe.model, "tools": recipe.tools.model_dump(mode="json")}
    return list(references_in(blocks))


def _validated(
    read: Callable[[Any], _Block],
    written_block: JSONObject,
    name: str,
    environment: Mapping[str, str],
    read_file: Callable[[str], str] | None,
) -> _Block:
    resolved = resolve_references(written_block, environment, read_file, at=(name,))
    try:
        return read(resolved)
    except ValidationError as error:
        line = error.errors(include_url=False, include_input=False)[0]
        raise RecipeInvalid(f"{written((name, *line['loc']))}: {line['msg']} (references resolved)") from None


def _value_at(model: JSONObject, place: Place) -> Any:
    """The value an error is about; None when it is about the block as a whole or about a key that is missing."""
    depth, value = followed(model, place)
    return None if depth == 0 or (depth < len(place) and isinstance(value, dict)) else value


def _error_type(line: ErrorDetails) -> str | PydanticCustomError:
    """The type to raise an error with again: those of validators carry their message as text."""
    if line["type"] in {"value_error", "assertion_error"}:
        return PydanticCustomError("value_error", "{cause}", {"cause": line["msg"].removeprefix("Value error, ")})
    return line["type"]
