"""Trying again: bounded, as late as the server asked, and not for what will not pass."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.errors import (
    AuthenticationFailed,
    ContextOverflow,
    MalformedReply,
    ModelError,
    ModelRefusedRequest,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
)
from conversations.messages import assistant
from conversations.models.model import ModelReply, ModelRequest
from conversations.models.offline_server import Faults, OfflineServer
from conversations.models.openai_compatible import OpenAICompatibleModel
from conversations.models.retrying import RetryingModel, RetryPolicy, wait_seconds
from conversations.models.settings import ModelSettings, OfflineSettings

REPLY = ModelReply(assistant("Hello."), "stop", 1, 1, "m")
REQUEST = ModelRequest([{"role": "user", "content": "Hi"}])


class Scripted:
    """A model whose outcomes are given; counts how often it was asked, opened and closed."""

    model_id = "scripted"

    def __init__(self, *outcomes: ModelError | ModelReply) -> None:
        self.outcomes = list(outcomes)
        self.asked = self.opened = self.closed = 0

    async def ask(self, request: ModelRequest) -> ModelReply:
        self.asked += 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, ModelError):
            raise outcome
        return outcome

    async def open(self) -> None:
        self.opened += 1

    async def close(self) -> None:
        self.closed += 1


class Clock:
    """Waits without waiting."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def retrying(model: Scripted, clock: Clock, **policy: Any) -> RetryingModel:
    return RetryingModel(model, RetryPolicy(**policy), chance=Random(1), sleep=clock.sleep)


async def test_f18_it_asks_until_there_is_a_reply_and_counts_the_attempts() -> None:
    model, clock = Scripted(RateLimited("r"), ModelUnavailable("u"), ModelTimeout("t"), REPLY), Clock()

    reply = await retrying(model, clock).ask(REQUEST)

    assert (reply.message, reply.attempts) == (REPLY.message, 4)
    assert len(clock.waits) == 3


async def test_a_reply_at_once_is_passed_on_as_it_is() -> None:
    assert await retrying(Scripted(REPLY), Clock()).ask(REQUEST) is REPLY


async def test_f18_tries_are_bounded_and_the_last_error_goes_through() -> None:
    last = ModelUnavailable("last")
    model, clock = Scripted(*[ModelUnavailable(str(n)) for n in range(5)], last), Clock()

    with pytest.raises(ModelUnavailable) as caught:
        await retrying(model, clock, max_retries=5).ask(REQUEST)

    assert caught.value is last
    assert (model.asked, len(clock.waits)) == (6, 5)


async def test_f18_the_total_wait_is_bounded() -> None:
    model, clock = Scripted(RateLimited("r", retry_after_seconds=100)), Clock()

    with pytest.raises(RateLimited):
        await retrying(model, clock, max_retries=1000, total_wait_seconds=350).ask(REQUEST)

    assert sum(clock.waits) <= 350
    assert model.asked <= 4


@pytest.mark.parametrize("kind", [ModelRefusedRequest, AuthenticationFailed, ContextOverflow, ModelError])
async def test_what_will_not_pass_is_not_tried_again(kind: type[ModelError]) -> None:
    model, clock = Scripted(kind("no")), Clock()

    with pytest.raises(kind):
        await retrying(model, clock).ask(REQUEST)

    assert (model.asked, clock.waits) == (1, [])


async def test_f20_the_same_malformed_reply_three_times_is_given_up() -> None:
    model = Scripted(MalformedReply("no choices"))

    with pytest.raises(MalformedReply):
        await retrying(model, Clock(), max_retries=50).ask(REQUEST)

    assert model.asked == 3


async def test_f20_different_malformed_replies_are_tried_on() -> None:
    model = Scripted(*[MalformedReply(f"cut at {n}") for n in range(5)], REPLY)

    assert (await retrying(model, Clock(), max_retries=5).ask(REQUEST)).attempts == 6


async def test_f18_the_same_refusal_to_serve_is_no_deterministic_failure() -> None:
    model = Scripted(*[ModelUnavailable("503")] * 5, REPLY)

    assert (await retrying(model, Clock(), max_retries=5).ask(REQUEST)).attempts == 6


@given(st.floats(0, 10_000), st.integers(1, 60), st.integers())
def test_f18_nobody_comes_before_the_time_they_were_told_nor_much_after_the_cap(
    told: float, attempt: int, seed: int
) -> None:
    policy = RetryPolicy(cap_seconds=120)

    waited = wait_seconds(policy, attempt, RateLimited("r", retry_after_seconds=told), Random(seed))

    assert min(told, 120) <= waited <= 120 * 1.25


@given(st.integers(1, 2000), st.integers())
def test_waits_without_word_from_the_server_grow_to_the_cap(attempt: int, seed: int) -> None:
    waited = wait_seconds(RetryPolicy(cap_seconds=20), attempt, ModelUnavailable("u"), Random(seed))

    assert 0 < waited <= 20 * 1.25


def test_those_who_were_told_the_same_time_do_not_come_together() -> None:
    error = RateLimited("r", retry_after_seconds=10)

    assert len({wait_seconds(RetryPolicy(), 1, error, Random(seed)) for seed in range(50)}) == 50


async def test_it_opens_and_closes_what_it_wraps() -> None:
    inner = Scripted(REPLY)
    model = retrying(inner, Clock())
    await model.open()
    await model.close()

    assert (model.model_id, inner.opened, inner.closed) == ("scripted", 1, 1)


async def test_f18_through_a_server_of_faults_every_question_is_answered() -> None:
    faults = Faults(rate_429=0.2, rate_500=0.15, rate_truncated=0.15, rate_malformed=0.1, retry_after_seconds=7)
    async with OfflineServer(OfflineSettings(turns=1, seed=5), faults=faults) as server:
        clock = Clock()
        inner = OpenAICompatibleModel(ModelSettings(provider="openai", model="m", base_url=server.base_url))
        model = RetryingModel(inner, RetryPolicy(max_retries=30), chance=Random(1), sleep=clock.sleep)
        await model.open()
        replies = [await model.ask(ModelRequest([{"role": "user", "content": f"Question {n}"}])) for n in range(40)]
        await model.close()

    assert all(f"Question {n}" in reply.message["content"] for n, reply in enumerate(replies))
    assert sum(reply.attempts for reply in replies) == server.statistics.requests > 60
    assert len(clock.waits) == server.statistics.requests - 40
    assert any(waited >= 7 for waited in clock.waits)
