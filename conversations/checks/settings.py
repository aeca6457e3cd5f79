"""What a recipe may say of its checks: one model a type, read by the type."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from conversations.messages import JSONObject


class CheckSettings(BaseModel):
    """What all have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str


class ValidCalls(CheckSettings):
    """At most so many calls of tools that are not there, or with arguments that their schema refuses."""

    type: Literal["valid_calls"]
    at_most: int = Field(default=0, ge=0)


class NoFailedCalls(CheckSettings):
    """At most so many calls that failed for any reason but a fault on purpose."""

    type: Literal["no_failed_calls"]
    at_most: int = Field(default=0, ge=0)


class NoOrphanIds(CheckSettings):
    """Every call has exactly one result, in call order, right behind it."""

    type: Literal["no_orphan_ids"]


class NoRefusal(CheckSettings):
    """The assistant nowhere says one of these phrases (in any case); more may be given."""

    type: Literal["no_refusal"]
    phrases: tuple[str, ...] = ()


class NoRepetition(CheckSettings):
    """No text of the assistant and no call comes `times` times, and no text goes round in circles."""

    type: Literal["no_repetition"]
    times: int = Field(default=3, ge=2)


class Length(CheckSettings):
    """Bounds of model turns, tool calls, and characters that the assistant says in all; None means none."""

    type: Literal["length"]
    min_turns: int | None = Field(default=None, ge=0)
    max_turns: int | None = Field(default=None, ge=1)
    min_tool_calls: int | None = Field(default=None, ge=0)
    max_tool_calls: int | None = Field(default=None, ge=0)
    min_chars: int | None = Field(default=None, ge=0)
    max_chars: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _bounds_something(self) -> Self:
        bounds = self.model_dump(exclude={"type"}, exclude_none=True)
        if not bounds:
            raise ValueError("give at least one bound, such as min_tool_calls")
        for name in ("turns", "tool_calls", "chars"):
            low, high = bounds.get(f"min_{name}"), bounds.get(f"max_{name}")
            if low is not None and high is not None and low > high:
                raise ValueError(f"min_{name} is more than max_{name}")
        return self


class ToolCoverage(CheckSettings):
    """At least so many of these tools (`ns::tool`, `ns::*`; none: of all that were offered) ran without error."""

    type: Literal["tool_coverage"]
    tools: tuple[str, ...] = ()
    at_least: int = Field(default=1, ge=1)


class JudgeSettings(BaseModel):
    """A model that judges by a rubric; `model` None means the recipe's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: JSONObject | None = None
    rubric: str = Field(min_length=1)


class Judge(CheckSettings):
    """A model gives points from 1 to 10 by the rubric; fewer than `threshold` are too few."""

    type: Literal["judge"]
    model: JSONObject | None = None
    rubric: str = Field(min_length=1)
    threshold: float = Field(default=6, ge=1, le=10)


CHECK_SETTINGS: Mapping[str, type[CheckSettings]] = MappingProxyType(
    {
        "valid_calls": ValidCalls,
        "no_failed_calls": NoFailedCalls,
        "no_orphan_ids": NoOrphanIds,
        "no_refusal": NoRefusal,
        "no_repetition": NoRepetition,
        "length": Length,
        "tool_coverage": ToolCoverage,
        "judge": Judge,
    }
)


def check_settings(block: Any) -> CheckSettings:
    """Read one entry of `checks`; a ValueError names the types there are, pydantic's says what else is wrong."""
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str) or kind not in CHECK_SETTINGS:
        raise ValueError(f"a check has a type, one of {', '.join(CHECK_SETTINGS)}; got {kind!r}")
    return CHECK_SETTINGS[kind].model_validate(block)
