"""Lets an engine speak through a model: the lm engine's `Speak`, answered by a Model."""

from collections.abc import Mapping
from types import MappingProxyType

from conversations.errors import (
    AuthenticationFailed,
    MalformedReply,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
)
from conversations.messages import JSONObject, text_of
from conversations.models.model import Model, ModelRequest
from engines.errors import ToolFailed
from engines.speak import Speak, Utterance
from engines.tool import ErrorType

_ERROR_TYPES: Mapping[type[ModelError], ErrorType] = MappingProxyType(
    {
        ModelTimeout: ErrorType.timeout,
        ModelUnavailable: ErrorType.network,
        RateLimited: ErrorType.network,
        AuthenticationFailed: ErrorType.permission,
        MalformedReply: ErrorType.unparseable_result,
    }
)


def error_type_of(error: ModelError) -> ErrorType:
    """What a failing model is to whoever called the tool behind which it stands."""
    return _ERROR_TYPES.get(type(error), ErrorType.execution)


def speak_with(model: Model) -> Speak:
    """The model, open and shared, as something that simulates tools; its failures become ToolFailed."""
    return _Speaking(model)


class _Speaking:
    __slots__ = ("_model",)

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def model_id(self) -> str:
        """The model's name: the lm engine chooses the instruction's role by it (rule D20)."""
        return self._model.model_id

    async def __call__(
        self, messages: list[JSONObject], *, response_format: JSONObject, candidates: int, seed: int, session_id: str
    ) -> list[Utterance]:
        """One utterance per candidate, with its logprob where there are several to choose from (rule D26)."""
        request = ModelRequest(
            messages,
            response_format=response_format,
            candidates=candidates,
            logprobs=candidates > 1,
            seed=seed,
            session_id=session_id,
        )
        try:
            reply = await self._model.ask(request)
        except ModelError as error:
            raise ToolFailed(
                error_type_of(error), f"the model that simulates this tool failed: {error.message}"
            ) from error
        if not reply.alternatives:
            return [Utterance(text_of(reply.message), None, reply.input_tokens, reply.output_tokens)]
        first, *others = reply.alternatives
        return [
            Utterance(text_of(first.message), first.logprob, reply.input_tokens, reply.output_tokens),
            *(Utterance(text_of(other.message), other.logprob) for other in others),
        ]
