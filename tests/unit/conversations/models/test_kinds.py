"""The table of model kinds."""

from typing import get_args

import pytest

from conversations.models.kinds import MODEL_KINDS, build_model
from conversations.models.retrying import RetryingModel
from conversations.models.settings import ModelSettings, Provider


def test_every_provider_has_a_kind() -> None:
    assert set(MODEL_KINDS) == set(get_args(Provider))


@pytest.mark.parametrize("provider", MODEL_KINDS)
def test_a_built_model_tries_again_and_shows_no_key(provider: str) -> None:
    model = build_model(ModelSettings.model_validate({"provider": provider, "model": "m", "api_key": "canary-5"}))

    assert isinstance(model, RetryingModel)
    assert model.model_id == "m"
    assert "canary" not in repr(model)
