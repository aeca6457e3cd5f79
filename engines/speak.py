"""What the lm engine needs from above: something that answers messages (this floor owns the shape)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from engines.plain import JSONObject


@dataclass(frozen=True, slots=True)
class Utterance:
    """One candidate answer; `logprob` is the sum over its tokens."""

    text: str
    logprob: float | None
    input_tokens: int = 0
    output_tokens: int = 0


class Speak(Protocol):
    """A model, asked for a tool's result."""

    @property
    def model_id(self) -> str:
        """The model's name as its provider knows it."""

    async def __call__(
        self,
        messages: list[JSONObject],
        *,
        response_format: JSONObject,
        candidates: int,
        seed: int,
        session_id: str,
    ) -> list[Utterance]:
        """Return the candidates; raise ToolFailed when there are none to be had."""


SpeakFor = Callable[[JSONObject], Speak]
"""Makes a Speak of an `lm_config`; ValueError for one that cannot be used."""
