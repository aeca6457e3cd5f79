"""A recipe: how the conversations of a run are made. What it says, checked; its references are not yet resolved."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from conversations.checks.settings import CheckSettings, Judge, JudgeSettings, check_settings
from conversations.errors import RecipeInvalid
from conversations.messages import JSONObject
from conversations.models.settings import ModelChoice, model_choice
from conversations.places import Place, followed, written
from conversations.policy.limits import Limits, UserLimits
from conversations.references import Reference, has_reference, references_in, resolve_references
from conversations.user_settings import UserSettings
from engines.configuration import ToolsConfiguration
from engines.network.connection import ConnectionSettings

_Block = TypeVar("_Block", bound=BaseModel)


class CandidateSettings(BaseModel):
    """Ask for `n` replies a turn; the first whose calls can be run goes on, or the one that a judge prefers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int = Field(ge=2, le=16)
    choose: Literal["first_valid", "judge"] = "first_valid"
    judge: JudgeSettings | None = None

    @model_validator(mode="after")
    def _has_a_judge_to_ask(self) -> Self:
        if (self.choose == "judge") != (self.judge is not None):
            raise ValueError("`choose: judge` and a `judge` with a rubric belong together")
        if self.judge is not None and self.judge.model is not None:
            _check_model_block(self.judge.model, ("judge", "model"))
        return self


class ExternalSettings(BaseModel):
    """Calls that somebody outside answers: how long each may take (seconds; None: any time), who is told.

    `webhook` is a connection: `{url, headers?, bearer_token?, …}`, or the URL alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    deadline_seconds: float | None = Field(default=86_400.0, gt=0)
    webhook: JSONObject | None = None

    @field_validator("webhook", mode="before")
    @classmethod
    def _text_is_a_url(cls, webhook: Any) -> Any:
        return {"url": webhook} if isinstance(webhook, str) else webhook


class ConversationSettings(BaseModel):
    """The loop: what the model is told first, and how long it may go on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str | None = None
    max_turns: int = Field(default=20, ge=1)
    max_tool_calls: int = Field(default=10, ge=1)
    on_max_turns: Literal["error", "answer"] = "error"
    tool_choice: str | JSONObject | None = None

    user: UserSettings | None = None
    candidates: CandidateSettings | None = None
    external: ExternalSettings = ExternalSettings()

    @field_validator("user")
    @classmethod
    def _is_played_by_a_known_model(cls, user: UserSettings | None) -> UserSettings | None:
        if user is not None and user.model is not None:
            _check_model_block(user.model, ("model",))
        return user


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
    checks: tuple[JSONObject, ...] = ()

    @field_validator("checks")
    @classmethod
    def _are_checks(cls, checks: tuple[JSONObject, ...]) -> tuple[JSONObject, ...]:
        for position, block in enumerate(checks):
            try:
                settings = check_settings(block)
                if isinstance(settings, Judge) and settings.model is not None:
                    _check_model_block(settings.model, ("model",))
            except ValidationError as error:
                raise _raised_at(error, (position,)) from None
            except ValueError as error:
                wrong = PydanticCustomError("value_error", "{cause}", {"cause": str(error)})
                detail = InitErrorDetails(type=wrong, loc=(position,), input=None)
                raise ValidationError.from_exception_data("checks", [detail], hide_input=True) from None
        return checks

    @property
    def check_settings(self) -> list[CheckSettings]:
        """The checks, read."""
        return [check_settings(block) for block in self.checks]

    @field_validator("model")
    @classmethod
    def _is_known_as_far_as_written(cls, model: JSONObject) -> JSONObject:
        _check_model_block(model)
        return model

    def model_settings(
        self, environment: Mapping[str, str], read_file: Callable[[str], str] | None = None
    ) -> ModelChoice:
        """The model block with its references resolved; RecipeInvalid never shows a value."""
        return _validated(model_choice, self.model, "model", environment, read_file)

    def user_model_settings(
        self, environment: Mapping[str, str], read_file: Callable[[str], str] | None = None
    ) -> ModelChoice | None:
        """The model of the simulated user, references resolved: the recipe's own where it names none."""
        user = self.conversation.user
        if user is None:
            return None
        if user.model is None:
            return self.model_settings(environment, read_file)
        return _validated(model_choice, user.model, "conversation.user.model", environment, read_file)

    def webhook_settings(
        self, environment: Mapping[str, str], read_file: Callable[[str], str] | None = None
    ) -> ConnectionSettings | None:
        """Where somebody is told of calls that wait for them, references resolved; None where nobody is."""
        webhook = self.conversation.external.webhook
        if webhook is None:
            return None
        at = "conversation.external.webhook"
        return _validated(ConnectionSettings.model_validate, webhook, at, environment, read_file)

    def judge_settings(
        self, block: JSONObject | None, environment: Mapping[str, str], read_file: Callable[[str], str] | None = None
    ) -> ModelChoice:
        """The model of a judge, references resolved: the recipe's own where it names none."""
        if block is None:
            return self.model_settings(environment, read_file)
        return _validated(model_choice, block, "judge.model", environment, read_file)

    def judge_blocks(self) -> list[tuple[str, JSONObject | None]]:
        """Every judge of the recipe: where it stands and its model's block."""
        judges = [
            (f"checks[{position}].model", settings.model)
            for position, settings in enumerate(self.check_settings)
            if isinstance(settings, Judge)
        ]
        candidates = self.conversation.candidates
        if candidates is not None and candidates.judge is not None:
            judges.append(("conversation.candidates.judge.model", candidates.judge.model))
        return judges

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
            user=UserLimits(user.max_user_turns, user.opens) if (user := self.conversation.user) else None,
        )


def find_references(recipe: Recipe) -> list[Reference]:
    """Every reference of a recipe, in the order of the file: what the workers must be able to resolve."""
    return list(references_in(blocks_with_references(recipe.model_dump(mode="json"))))


def blocks_with_references(recipe: JSONObject) -> JSONObject:
    """The parts of a recipe, as written, in which `${VAR}` and `file:` mean something: models and tools."""
    blocks: JSONObject = {"model": recipe["model"], "tools": recipe.get("tools")}
    conversation = recipe.get("conversation")
    if isinstance(conversation, dict):
        external = conversation.get("external")
        webhook = external.get("webhook") if isinstance(external, dict) else None
        blocks["conversation"] = {"user": _model_of(conversation.get("user")), "external": {"webhook": webhook}}
        candidates = conversation.get("candidates")
        judge = candidates.get("judge") if isinstance(candidates, dict) else None
        blocks["conversation"]["candidates"] = {"judge": _model_of(judge)}
    checks = recipe.get("checks")
    blocks["checks"] = [_model_of(check) for check in checks] if isinstance(checks, list | tuple) else None
    return blocks


def _model_of(block: Any) -> JSONObject:
    return {"model": block.get("model")} if isinstance(block, dict) else {}


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


def _raised_at(error: ValidationError, at: Place) -> ValidationError:
    """The error as one of a part further down."""
    details = [
        InitErrorDetails(type=_error_type(line), loc=(*at, *line["loc"]), input=None, ctx=line.get("ctx", {}))
        for line in error.errors(include_url=False)
    ]
    return ValidationError.from_exception_data("recipe", details, hide_input=True)


def _check_model_block(block: JSONObject, at: Place = ()) -> None:
    """What hangs on a reference can only be checked where it is resolved; all else is checked here."""
    try:
        model_choice(block)
    except ValidationError as error:
        lines = error.errors(include_url=False)
        known_now = [line for line in lines if not has_reference(_value_at(block, line["loc"]))]
        if known_now:
            details = [
                InitErrorDetails(type=_error_type(line), loc=(*at, *line["loc"]), input=None, ctx=line.get("ctx", {}))
                for line in known_now
            ]
            raise ValidationError.from_exception_data("model", details, hide_input=True) from None


def _value_at(model: JSONObject, place: Place) -> Any:
    """The value an error is about; None when it is about the block as a whole or about a key that is missing."""
    depth, value = followed(model, place)
    return None if depth == 0 or (depth < len(place) and isinstance(value, dict)) else value


def _error_type(line: ErrorDetails) -> str | PydanticCustomError:
    """The type to raise an error with again: those of validators carry their message as text."""
    if line["type"] in {"value_error", "assertion_error"}:
        return PydanticCustomError("value_error", "{cause}", {"cause": line["msg"].removeprefix("Value error, ")})
    return line["type"]
