"""Models made of models: another one where the first cannot answer, or each conversation one of several."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

import structlog

from conversations.errors import ModelError
from conversations.models.candidates import CandidatesModel
from conversations.models.model import Model, ModelReply, ModelRequest
from engines.chance import derive_seed

log = structlog.get_logger(__name__)

_SEED_BITS = 53


class FallbackModel:
    """Asks the first; where it fails for good (its retries are over), the next, for this request only."""

    def __init__(self, models: Sequence[Model]) -> None:
        """In the order in which they are asked."""
        self._models = tuple(models)

    @property
    def model_id(self) -> str:
        """The first one's."""
        return self._models[0].model_id

    async def open(self) -> None:
        """Open them all."""
        for model in self._models:
            await model.open()

    async def close(self) -> None:
        """Close them all, also after one that fails."""
        for model in self._models:
            await model.close()

    async def ask(self, request: ModelRequest) -> ModelReply:
        """The first reply there is; the last model's error when there is none."""
        *others, last = self._models
        for model in others:
            try:
                return await model.ask(request)
            except ModelError as error:
                log.info("asking the fallback model", failed=model.model_id, type=error.type)
        return await last.ask(request)


def model_id_for(model: Model, session_id: str) -> str:
    """The name of the model that a conversation is played by."""
    while isinstance(model, CandidatesModel):
        model = model.inner
    return model.of(session_id).model_id if isinstance(model, WeightedModels) else model.model_id


class WeightedModels:
    """Each conversation keeps to one of several models, drawn by its name: the same one in every attempt."""

    def __init__(self, models: Sequence[tuple[Model, float]]) -> None:
        """Models with their weights."""
        self._models = tuple(model for model, _ in models)
        self._bounds = tuple(accumulate(weight for _, weight in models))

    @property
    def model_id(self) -> str:
        """All of them."""
        return " | ".join(dict.fromkeys(model.model_id for model in self._models))

    def of(self, session_id: str) -> Model:
        """The model of a conversation."""
        point = derive_seed("model", session_id) / 2**_SEED_BITS * self._bounds[-1]
        return self._models[min(bisect_right(self._bounds, point), len(self._models) - 1)]

    def shares(self) -> Mapping[str, float]:
        """Which share of the conversations each model has, for people to read."""
        before = (0.0, *self._bounds)
        whole = self._bounds[-1]
        return {
            model.model_id: (bound - low) / whole
            for model, low, bound in zip(self._models, before, self._bounds, strict=False)
        }

    async def open(self) -> None:
        """Open them all."""
        for model in self._models:
            await model.open()

    async def close(self) -> None:
        """Close them all."""
        for model in self._models:
            await model.close()

    async def ask(self, request: ModelRequest) -> ModelReply:
        """The conversation's own model answers."""
        return await self.of(request.session_id).ask(request)
