"""An engine speaks through a model."""

import json

import pytest

from conversations.errors import (
    AuthenticationFailed,
    ContextOverflow,
    MalformedReply,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
)
from conversations.messages import user
from conversations.models.kinds import build_model
from conversations.models.model import ModelReply, ModelRequest
from conversations.models.settings import ModelSettings
from conversations.models.speaking import speak_with
from engines.errors import ToolFailed
from engines.tool import ErrorType

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FORMAT = {"type": "json_schema", "json_schema": {"name": "r", "schema": SCHEMA}}


async def test_one_candidate_is_one_utterance_with_its_tokens() -> None:
    speak = speak_with(build_model(ModelSettings.from_lm_config({"type": "offline", "model": "sim"})))

    (utterance,) = await speak([user("go")], response_format=FORMAT, candidates=1, seed=1, session_id="s")

    assert speak.model_id == "sim"
    assert isinstance(json.loads(utterance.text)["n"], int)
    assert utterance.output_tokens > 0
    assert utterance.logprob is None


async def test_d26_several_candidates_come_with_logprobs_and_tokens_are_counted_once() -> None:
    speak = speak_with(build_model(ModelSettings(provider="offline")))

    utterances = await speak([user("go")], response_format=FORMAT, candidates=3, seed=1, session_id="s")

    assert len(utterances) == 3
    assert all(each.logprob is not None for each in utterances)
    assert [each.output_tokens > 0 for each in utterances] == [True, False, False]


class Failing:
    """A model that always fails in its way."""

    model_id = "failing"

    def __init__(self, error: ModelError) -> None:
        self.error = error

    async def ask(self, request: ModelRequest) -> ModelReply:
        raise self.error

    async def open(self) -> None: ...

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("error", "error_type"),
    [
        (ModelTimeout("x"), ErrorType.timeout),
        (ModelUnavailable("x"), ErrorType.network),
        (RateLimited("x"), ErrorType.network),
        (AuthenticationFailed("x"), ErrorType.permission),
        (MalformedReply("x"), ErrorType.unparseable_result),
        (ContextOverflow("x"), ErrorType.execution),
    ],
)
async def test_a_model_that_fails_is_a_tool_that_failed(error: ModelError, error_type: ErrorType) -> None:
    with pytest.raises(ToolFailed) as caught:
        await speak_with(Failing(error))([], response_format=FORMAT, candidates=1, seed=1, session_id="s")

    assert caught.value.error_type is error_type
