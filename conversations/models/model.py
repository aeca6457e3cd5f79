"""The contract of a language model: one request, one reply or one ModelError; every variant passes one test suite."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from conversations.messages import JSONObject, Message


@dataclass(slots=True)
class ModelRequest:
    """What a model is asked.

    `encoded_messages` and `encoded_tools` are the same values already as JSON bytes, for variants that send them;
    without them the variant encodes by itself. `session_id` names the conversation: stable over its calls.
    `failed_call_ids` are the calls of the history whose result is an error. `encoded_extras` is what Anthropic's tool
    definitions take beyond OpenAI's; `parameters` (see `Sampling`) stand over the model's own settings. `memory` is the
    conversation's: a variant keeps there what it made of the history, so that it translates each message once.
    """

    messages: list[Message]
    encoded_messages: list[bytes] | None = None
    tools: list[JSONObject] | None = None
    encoded_tools: bytes | None = None
    tool_choice: Any = None
    response_format: JSONObject | None = None
    candidates: int = 1
    logprobs: bool = False
    seed: int | None = None
    session_id: str = ""
    failed_call_ids: Collection[str] = ()
    encoded_extras: bytes = b""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of several candidates; `logprob` is the sum over its tokens, None when the server does not say.

    `finish_reason` is empty where the message itself tells it (calls, or a text).
    """

    message: Message
    logprob: float | None = None
    finish_reason: str = ""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model said: `message` is ready for the history.

    `finish_reason` is one of `stop`, `tool_calls`, `length`, `content_filter`, `refusal`, `pause_turn` (the server
    wants to be asked again with what it said so far). `alternatives` holds all usable candidates in the server's order,
    the chosen one first, when several candidates or their logprobs were asked for.
    """

    message: Message
    finish_reason: str
    input_tokens: int
    output_tokens: int
    model: str
    attempts: int = 1
    alternatives: tuple[Alternative, ...] = ()


class Model(Protocol):
    """A language model; `ask` may run many times at once between `open` and `close`."""

    @property
    def model_id(self) -> str:
        """The model's name as the server knows it."""

    async def ask(self, request: ModelRequest) -> ModelReply:
        """The reply, or a ModelError that says whether trying again may help; never another exception."""

    async def open(self) -> None:
        """Take connections; a second time does nothing."""

    async def close(self) -> None:
        """Give them back; idempotent."""
