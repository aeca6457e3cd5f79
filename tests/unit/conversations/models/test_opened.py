"""A model opened for as long as it is asked."""

from collections.abc import Callable

import pytest

from conversations.models.kinds import build_model
from conversations.models.model import Model, ModelReply, ModelRequest
from conversations.models.opened import opened_speak
from conversations.models.settings import ModelSettings


class Noting:
    """A model that notes what is done with it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.model_id = model.model_id
        self.seen: list[str] = []

    async def open(self) -> None:
        self.seen.append("open")
        await self._model.open()

    async def close(self) -> None:
        self.seen.append("close")
        await self._model.close()

    async def ask(self, request: ModelRequest) -> ModelReply:
        self.seen.append("ask")
        return await self._model.ask(request)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Noting]:
    models: list[Noting] = []

    def noting(build: Callable[[ModelSettings], Model]) -> Callable[[ModelSettings], Noting]:
        def noted(settings: ModelSettings) -> Noting:
            models.append(Noting(build(settings)))
            return models[-1]

        return noted

    monkeypatch.setattr("conversations.models.opened.build_model", noting(build_model))
    return models


async def test_a_model_is_open_inside_and_closed_after(built: list[Noting]) -> None:
    async with opened_speak({"type": "offline"}) as speak:
        format_ = {"type": "json_object"}
        messages = [{"role": "user", "content": "hello"}]
        (utterance,) = await speak(messages, response_format=format_, candidates=1, seed=1, session_id="s")
        assert utterance.text
        assert built[0].seen == ["open", "ask"]
    assert built[0].seen == ["open", "ask", "close"]


async def test_a_model_is_closed_when_its_use_fails(built: list[Noting]) -> None:
    with pytest.raises(RuntimeError, match="broken"):
        async with opened_speak({"type": "offline"}):
            raise RuntimeError("broken")
    assert built[0].seen == ["open", "close"]


@pytest.mark.parametrize(
    "lm_config",
    [{"type": "nonsense", "api_key": "sesame"}, {}, {"type": "openai", "model_id_or_path": "m", "n": "sesame"}],
)
async def test_a_model_that_cannot_be_used_is_told_without_its_values(lm_config: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        async with opened_speak(lm_config):
            pass
    assert "sesame" not in str(caught.value)
