"""Any server that speaks OpenAI's chat completions: a thin client that sends bytes already encoded."""

import time
import uuid
from collections.abc import Callable
from urllib.parse import urlsplit

import orjson

from conversations.encoding import encode_json
from conversations.errors import MalformedReply
from conversations.messages import JSONObject
from conversations.models.exchange import Exchange
from conversations.models.model import ModelReply, ModelRequest
from conversations.models.openai_stream import CompletionStream
from conversations.models.replies import read_completion, reply_of
from conversations.models.settings import ModelSettings
from conversations.wire.openai import call_ids_in


def random_call_id() -> str:
    """An id for a call whose server gave none."""
    return f"call_{uuid.uuid4().hex[:24]}"


class OpenAICompatibleModel:
    """One model of one server; safe to use from many conversations at once."""

    def __init__(
        self,
        settings: ModelSettings,
        *,
        clock: Callable[[], float] = time.time,
        make_call_id: Callable[[], str] = random_call_id,
    ) -> None:
        """Connects to nothing yet."""
        self._settings = settings
        self._make_call_id = make_call_id
        headers = {}
        if settings.api_key is not None:
            headers["Authorization"] = f"Bearer {settings.api_key.get_secret_value()}"
        self._exchange = Exchange(settings, path="/chat/completions", headers=headers, clock=clock)
        self._prefix = _static_prefix(settings)

    def __repr__(self) -> str:
        """Names the place and nothing secret."""
        return f"<{type(self).__name__} {self._exchange.place}>"

    @property
    def model_id(self) -> str:
        """The model's name as the server knows it."""
        return self._settings.model_name

    async def open(self) -> None:
        """Take the process's shared client."""
        await self._exchange.open()

    async def close(self) -> None:
        """Give it back."""
        await self._exchange.close()

    async def ask(self, request: ModelRequest) -> ModelReply:
        """One try; a reply or a typed error."""
        if not self._settings.stream:
            data = await self._exchange.post(self.body_of(request), request.session_id)
            return self._read(data or b"", request)
        stream = CompletionStream(self._exchange.place)
        data = await self._exchange.post(self.body_of(request), request.session_id, stream.feed)
        # A server that knows no streams answers all at once.
        return self._read(data, request) if data is not None else self._reply(stream.finished(), stream.seen, request)

    def body_of(self, request: ModelRequest) -> bytes:
        """The request's JSON, put together from fragments: the static parts first and the same bytes each time."""
        parts = [_static_prefix(self._settings.saying(request.parameters)) if request.parameters else self._prefix]
        if request.tools:
            parts += b',"tools":', request.encoded_tools or encode_json(request.tools)
            if request.tool_choice is not None:
                parts += b',"tool_choice":', orjson.dumps(request.tool_choice)
        if request.response_format is not None:
            parts += b',"response_format":', orjson.dumps(request.response_format)
        if request.candidates > 1:
            parts.append(b',"n":%d' % request.candidates)
        if request.logprobs:
            parts.append(b',"logprobs":true')
        if request.seed is not None:
            parts.append(b',"seed":%d' % request.seed)
        encoded = request.encoded_messages
        messages = [encode_json(message) for message in request.messages] if encoded is None else encoded
        parts += b',"messages":[', b",".join(messages), b"]}"
        return b"".join(parts)

    def _read(self, data: memoryview | bytes, request: ModelRequest) -> ModelReply:
        try:
            completion = read_completion(data)
        except MalformedReply as error:
            raise self._exchange.malformed(error, data) from None
        return self._reply(completion, data, request)

    def _reply(self, completion: JSONObject, data: memoryview | bytes, request: ModelRequest) -> ModelReply:
        try:
            if "choices" not in completion and completion.get("error"):
                raise self._exchange.error_inside(completion["error"], data)
            return reply_of(
                completion,
                model=self._settings.model_name,
                make_call_id=self._make_call_id,
                taken_ids=call_ids_in(request.messages),
                keep_reasoning=self._settings.reasoning == "keep",
                wants_alternatives=request.candidates > 1 or request.logprobs,
            )
        except MalformedReply as error:
            raise self._exchange.malformed(error, data) from None


def _static_prefix(settings: ModelSettings) -> bytes:
    """All that is the same in each request of this model, without the closing brace."""
    limit_key = "max_completion_tokens" if urlsplit(settings.endpoint).hostname == "api.openai.com" else "max_tokens"
    chosen: JSONObject = {
        "model": settings.model_name,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        limit_key: settings.max_tokens,
        "stop": settings.stop,
    }
    if settings.stream:
        chosen |= {"stream": True, "stream_options": {"include_usage": True}}
    return orjson.dumps({key: value for key, value in chosen.items() if value is not None} | settings.extra)[:-1]
