"""Several replies a turn, of which one goes on: the first that is sound, or the one that a judge prefers."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import orjson
import structlog

from conversations.errors import MalformedReply
from conversations.judge import ModelJudge
from conversations.messages import JSONObject, text_of, tool_calls_of
from conversations.models.model import Alternative, Model, ModelReply, ModelRequest
from conversations.wire.openai import MALFORMED_ARGUMENTS_KEY
from engines.chance import derive_seed
from engines.errors import InvalidTool
from engines.plain import canonical
from engines.schemas import Validator, compiled

_KEPT_TOOLSETS = 256
_SEED_RANGE = 2**31
_UNSOUND = frozenset({"length", "content_filter", "refusal"})

log = structlog.get_logger(__name__)


class Chosen:
    """Which candidate, and what the choice took."""

    __slots__ = ("index", "input_tokens", "output_tokens")

    def __init__(self, index: int, input_tokens: int = 0, output_tokens: int = 0) -> None:
        self.index, self.input_tokens, self.output_tokens = index, input_tokens, output_tokens


Choose = Callable[[ModelRequest, Sequence[Alternative]], Awaitable[Chosen]]


class CandidatesModel:
    """Asks for `count` candidates and gives the one that `choose` prefers; all their tokens count."""

    def __init__(self, model: Model, count: int, choose: Choose) -> None:
        self._model, self._count, self._choose = model, count, choose

    @property
    def model_id(self) -> str:
        """The inner model's."""
        return self._model.model_id

    @property
    def inner(self) -> Model:
        """The model that speaks."""
        return self._model

    async def open(self) -> None:
        """Open the inner model."""
        await self._model.open()

    async def close(self) -> None:
        """Close it."""
        await self._model.close()

    async def ask(self, request: ModelRequest) -> ModelReply:
        """The preferred reply; whoever asks for candidates itself gets them as they are."""
        if request.candidates > 1:
            return await self._model.ask(request)
        reply = await self._model.ask(replace(request, candidates=self._count))
        candidates = reply.alternatives
        if len(candidates) < 2:  # noqa: PLR2004 - a server that knows no candidates gives one
            return replace(reply, alternatives=())
        chosen = await self._choose(request, candidates)
        preferred = candidates[chosen.index]
        return replace(
            reply,
            message=preferred.message,
            finish_reason=_finish_reason(preferred),
            input_tokens=reply.input_tokens + chosen.input_tokens,
            output_tokens=reply.output_tokens + chosen.output_tokens,
            alternatives=(),
        )


async def first_valid(request: ModelRequest, candidates: Sequence[Alternative]) -> Chosen:
    """The first whose calls name tools that are offered, with arguments that fit; else the first."""
    valid = (index for index, candidate in enumerate(candidates) if is_sound(candidate, request))
    return Chosen(next(valid, 0))


class JudgedChoice:
    """The sound candidate that a judge prefers; where only one is sound, nobody is asked."""

    def __init__(self, judge: ModelJudge) -> None:
        self._judge = judge

    async def __call__(self, request: ModelRequest, candidates: Sequence[Alternative]) -> Chosen:
        """A judge that gives no answer costs the turn nothing but its choice: the first sound one is taken."""
        sound = [index for index, candidate in enumerate(candidates) if is_sound(candidate, request)]
        rivals = sound or list(range(len(candidates)))
        if len(rivals) == 1:
            return Chosen(rivals[0])
        messages = [candidates[index].message for index in rivals]
        seed = derive_seed("choice", request.seed or 0) % _SEED_RANGE
        try:
            verdict = await self._judge.best(request.messages, messages, seed=seed, session_id=request.session_id)
        except MalformedReply as error:
            log.info("the judge chose nothing", cause=error.message)
            return Chosen(rivals[0])
        return Chosen(rivals[int(verdict.value) - 1], verdict.input_tokens, verdict.output_tokens)


def is_sound(candidate: Alternative, request: ModelRequest) -> bool:
    """Whether a reply came to its end, says something, and every call of it can be run."""
    message = candidate.message
    if candidate.finish_reason in _UNSOUND or message.get("refusal"):
        return False
    calls = tool_calls_of(message)
    if not calls:
        return bool(text_of(message).strip())
    validators = _validators(request.encoded_tools or orjson.dumps(request.tools or []))
    for call in calls:
        validator = validators.get(call["function"]["name"])
        arguments = _arguments(call["function"]["arguments"])
        if validator is None or arguments is None or not validator.is_valid(arguments):
            return False
    said = [canonical([call["function"]["name"], call["function"]["arguments"]]) for call in calls]
    return len(set(said)) == len(said)


def _arguments(text: Any) -> JSONObject | None:
    try:
        arguments = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return arguments if isinstance(arguments, dict) and MALFORMED_ARGUMENTS_KEY not in arguments else None


@lru_cache(maxsize=_KEPT_TOOLSETS)
def _validators(encoded_tools: bytes) -> dict[str, Validator]:
    """By wire name; a schema that does not compile lets nothing through."""
    validators = {}
    for tool in orjson.loads(encoded_tools):
        try:
            validators[tool["function"]["name"]] = compiled(tool["function"].get("parameters") or {"type": "object"})
        except InvalidTool:
            continue
    return validators


def _finish_reason(preferred: Alternative) -> str:
    """What ended it, or what its message says: calls, or a text."""
    return preferred.finish_reason or ("tool_calls" if tool_calls_of(preferred.message) else "stop")
