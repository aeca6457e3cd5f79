"""What a recipe may say, and what it means where it is used."""

from typing import Any

import pytest
from pydantic import ValidationError

from conversations.errors import RecipeInvalid
from conversations.models.settings import ModelSettings
from conversations.policy.limits import Limits
from conversations.recipe import Recipe, find_references

OFFLINE = {"provider": "offline"}


def recipe(**keys: Any) -> Recipe:
    return Recipe.model_validate({"model": OFFLINE, **keys})


def test_only_the_model_is_required() -> None:
    plain = recipe()
    assert (plain.name, plain.seed, plain.conversation.max_turns, plain.limits.max_attempts) == (None, 0, 20, 3)
    with pytest.raises(ValidationError, match=r"model\n  Field required"):
        Recipe.model_validate({})


def test_a_recipe_round_trips_through_json() -> None:
    full = recipe(
        name="n",
        seed=3,
        conversation={
            "system": "s",
            "max_turns": 4,
            "max_tool_calls": 2,
            "on_max_turns": "answer",
            "tool_choice": "auto",
        },
        tools=[{"type": "inline", "tools": []}],
        limits={"max_attempts": 1, "max_seconds": 2.5, "max_total_tokens": 10, "max_total_tool_calls": 0},
    )
    assert Recipe.model_validate_json(full.model_dump_json()) == full


def test_the_limits_of_the_loop_come_from_the_recipe_and_a_jobs_turns_win() -> None:
    made = recipe(
        conversation={"max_turns": 4, "max_tool_calls": 2, "on_max_turns": "answer"},
        limits={"max_seconds": 2.5, "max_total_tokens": 10, "max_total_tool_calls": 5},
    )
    assert made.loop_limits() == Limits(4, 2, "answer", 5, 10, 2.5)
    assert made.loop_limits(7).max_turns == 7


@pytest.mark.parametrize(
    ("model", "place"),
    [
        ({"provider": "offline", "modl": "x"}, ("model", "modl")),
        ({"provider": "offline", "offline": {"turn": 3}}, ("model", "offline", "turn")),
        ({"provider": "offline", "temperature": "hot"}, ("model", "temperature")),
        ({"model": "x", "api_key": "${KEY}"}, ("model", "provider")),
        ({"provider": "openai", "api_key": "${KEY}"}, ("model",)),
        ({"provider": "${P}", "modl": "x"}, ("model", "modl")),
    ],
)
def test_what_is_wrong_with_the_model_block_shows_at_once(model: Any, place: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        Recipe.model_validate({"model": model})
    assert [error["loc"] for error in caught.value.errors()] == [place]


def test_what_hangs_on_a_reference_waits_until_it_is_resolved() -> None:
    model = {
        "provider": "${PROVIDER}",
        "model": "m",
        "base_url": "${URL:-http://localhost:1/v1}",
        "temperature": "${HEAT}",
        "headers": {"x": "Bearer ${KEY}"},
    }
    made = Recipe.model_validate({"model": model})
    assert made.model == model
    settings = made.model_settings({"PROVIDER": "openai", "HEAT": "0.5", "KEY": "k"})
    assert isinstance(settings, ModelSettings)
    assert (settings.provider, settings.base_url, settings.temperature) == ("openai", "http://localhost:1/v1", 0.5)
    assert settings.headers["x"].get_secret_value() == "Bearer k"


def test_sec_s11_a_resolved_value_that_is_wrong_is_named_by_place_and_not_shown() -> None:
    made = Recipe.model_validate({"model": {"provider": "openai", "model": "m", "base_url": "${URL}"}})
    with pytest.raises(RecipeInvalid, match=r"^model\.base_url: .*must be an http") as caught:
        made.model_settings({"URL": "canary"})
    assert "canary" not in str(caught.value)


def test_the_tools_block_is_resolved_on_the_worker() -> None:
    made = recipe(tools={"engines": {"e": {"type": "lm", "lm_config": {"api_key": "${KEY}"}}}})
    assert made.tools_configuration({"KEY": "k"}).engines["e"]["lm_config"] == {"api_key": "k"}
    assert made.tools.engines["e"]["lm_config"] == {"api_key": "${KEY}"}
    with pytest.raises(RecipeInvalid, match=r"^tools\.engines\.e\.lm_config\.api_key: the variable KEY is not set"):
        made.tools_configuration({})


def test_prompts_hold_no_references() -> None:
    made = recipe(name="${NAME}", conversation={"system": "say ${HOME}"}, tools=[{"type": "mcp", "url": "${URL}"}])
    assert [reference.name for reference in find_references(made)] == ["URL"]
