"""The turns that a conversation has behind it when its job begins: what a forked job goes on from."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from conversations.policy.dedup import DUPLICATE_OF
from engines.tool import ErrorType

JSONObject = dict[str, Any]


class EarlierResult(BaseModel):
    """What a call of these turns came to, in the record's form."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    call_id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    result: Any = None
    error: str | None = None
    error_type: ErrorType | None = None
    metadata: JSONObject = Field(default_factory=dict)


class EarlierTurns(BaseModel):
    """The key `history` of a job line; its `messages` are then the conversation so far, and nothing is added to them.

    `turns` counts the model's replies among the messages: limits go on from there (rule S10). `tool_results` become the
    history of the job's session. `user` is what the simulated user keeps. `finish_reason` is that of the last reply,
    where the loop needs it. `seed` stands in place of the job's for what the models say from here on.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    turns: int = Field(ge=0)
    tool_results: tuple[EarlierResult, ...] = ()
    user: JSONObject = Field(default_factory=dict)
    finish_reason: Literal["pause_turn"] | None = None
    seed: int | None = None

    @model_validator(mode="after")
    def _answers_each_call_once(self) -> Self:
        call_ids = [result.call_id for result in self.tool_results]
        if twice := sorted({call_id for call_id in call_ids if call_ids.count(call_id) > 1}):
            raise ValueError(f"tool_results holds two results of the call {twice[0]!r}")
        return self

    def check_against(self, messages: tuple[JSONObject, ...] | None) -> None:
        """ValueError where these turns are not in the messages."""
        if messages is None:
            raise ValueError('a job with "history" needs "messages": the conversation so far')
        replies = [message for message in messages if message.get("role") == "assistant"]
        if self.turns > len(replies):
            raise ValueError(f"history.turns is {self.turns}, but the messages hold {len(replies)} of the assistant")
        made = {str(call.get("id")) for reply in replies for call in _calls_of(reply)}
        for position, result in enumerate(self.tool_results):
            if result.call_id not in made:
                raise ValueError(f"history.tool_results[{position}]: no message makes the call {result.call_id!r}")

    @property
    def tool_calls(self) -> int:
        """How many calls were answered; equal ones of a batch count once."""
        return sum(DUPLICATE_OF not in result.metadata for result in self.tool_results)

    def entries(self) -> list[JSONObject]:
        """The results as a conversation's state holds them."""
        return [result.model_dump(mode="json") for result in self.tool_results]


def _calls_of(message: JSONObject) -> list[JSONObject]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
