"""Models made of models: who is asked when, and that a conversation keeps to its model."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import ValidationError

from conversations.errors import ContextOverflow, ModelError, ModelUnavailable
from conversations.messages import assistant, user
from conversations.models.choosing import FallbackModel, WeightedModels
from conversations.models.kinds import build_model
from conversations.models.model import ModelReply, ModelRequest
from conversations.models.settings import RoutedModels, model_choice


@dataclass
class Stub:
    """Answers with its name, or fails as told."""

    model_id: str
    failure: ModelError | None = None
    asked: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)

    async def open(self) -> None:
        self.states.append("open")

    async def close(self) -> None:
        self.states.append("closed")

    async def ask(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request.session_id)
        if self.failure is not None:
            raise self.failure
        return ModelReply(assistant(self.model_id), "stop", 1, 1, self.model_id)


def request(session_id: str = "s") -> ModelRequest:
    return ModelRequest([user("Hi")], session_id=session_id)


async def test_the_first_that_can_answers() -> None:
    models = [Stub("a", ModelUnavailable("down")), Stub("b", ContextOverflow("long")), Stub("c"), Stub("d")]
    reply = await FallbackModel(models).ask(request())
    assert (reply.model, [len(model.asked) for model in models]) == ("c", [1, 1, 1, 0])


async def test_when_none_can_the_last_error_counts() -> None:
    last = ContextOverflow("long")
    with pytest.raises(ContextOverflow) as caught:
        await FallbackModel([Stub("a", ModelUnavailable("down")), Stub("b", last)]).ask(request())
    assert caught.value is last


async def test_a_conversation_keeps_to_its_model_and_the_weights_hold() -> None:
    models = WeightedModels([(Stub("a"), 3), (Stub("b"), 1)])
    first = {f"run.{number:06d}": (await models.ask(request(f"run.{number:06d}"))).model for number in range(2000)}
    again = WeightedModels([(Stub("a"), 3), (Stub("b"), 1)])
    assert {name: (await again.ask(request(name))).model for name in first} == first
    share = sum(model == "a" for model in first.values()) / len(first)
    assert 0.7 < share < 0.8
    assert models.shares() == {"a": 0.75, "b": 0.25}
    assert models.model_id == "a | b"


async def test_all_are_opened_and_closed() -> None:
    stubs = [Stub("a"), Stub("b")]
    for model in (FallbackModel(stubs), WeightedModels([(stub, 1) for stub in stubs])):
        await model.open()
        await model.close()
    assert all(stub.states == ["open", "closed"] * 2 for stub in stubs)


def test_a_recipe_block_builds_them() -> None:
    offline = {"provider": "offline", "model": "one"}
    plain = build_model(model_choice(offline | {"fallback": [offline | {"model": "two"}]}))
    assert isinstance(plain, FallbackModel)
    routed = build_model(model_choice({"routes": [offline | {"weight": 2}, offline | {"model": "two"}]}))
    assert isinstance(routed, WeightedModels)
    assert routed.shares() == {"one": 2 / 3, "two": 1 / 3}


@pytest.mark.parametrize(
    "block",
    [
        {"routes": []},
        {"routes": [{"provider": "offline"}], "provider": "offline"},
        {"routes": [{"provider": "offline", "weight": 0}]},
        {"routes": [{"provider": "offline", "weight": -1}]},
        {"provider": "offline", "fallback": [{"provider": "nobody"}]},
        {"provider": "offline", "weight": 3},
    ],
)
def test_blocks_that_mean_nothing_are_refused(block: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model_choice(block)


def test_equal_blocks_are_one_model() -> None:
    block = {"routes": [{"provider": "offline", "weight": 2}]}
    assert len({model_choice(block): 1, model_choice(block): 2}) == 1
    assert isinstance(model_choice(block), RoutedModels)
