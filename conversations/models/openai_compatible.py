"""Any server that speaks OpenAI's chat completions: a thin client that sends bytes already encoded."""

import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import urlsplit, urlunsplit

import orjson
from pyreqwest.client import Client
from pyreqwest.exceptions import (
    ConnectError,
    ConnectTimeoutError,
    DecodeError,
    PyreqwestError,
    RequestTimeoutError,
)
from pyreqwest.request import RequestBuilder
from pyreqwest.response import Response

from conversations.encoding import encode_json
from conversations.errors import MalformedReply, ModelError, ModelTimeout, ModelUnavailable
from conversations.models.connections import ConnectionKind, release_client, take_client
from conversations.models.model import ModelReply, ModelRequest
from conversations.models.redaction import BODY_SHOWN_CHARS, redactor
from conversations.models.refusals import error_of_status
from conversations.models.replies import read_completion, reply_of
from conversations.models.retry_after import asked_wait_seconds
from conversations.models.settings import ModelSettings
from conversations.wire.openai import call_ids_in

SESSION_HEADER = "X-Session-ID"
_OK = 200
_CHUNK_BYTES = 1 << 16
_ERROR_BODY_BYTES = 1 << 16


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
        self._clock, self._make_call_id = clock, make_call_id
        self._kind = ConnectionKind.of(settings)
        self._client: Client | None = None
        self._url = _completions_url(settings.endpoint)
        self._place = f"model {settings.model_name!r} at {_place(settings.endpoint)}"
        self._timeout = timedelta(seconds=settings.timeout_seconds)
        self._prefix = _static_prefix(settings)
        self._headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
        self._headers["Content-Type"] = "application/json"
        if settings.api_key is not None:
            self._headers.setdefault("Authorization", f"Bearer {settings.api_key.get_secret_value()}")
        self._redact = redactor(_secrets(settings))

    def __repr__(self) -> str:
        """Names the place and nothing secret."""
        return f"<{type(self).__name__} {self._place}>"

    @property
    def model_id(self) -> str:
        """The model's name as the server knows it."""
        return self._settings.model_name

    async def open(self) -> None:
        """Take the process's shared client."""
        if self._client is None:
            self._client = await take_client(self._kind)

    async def close(self) -> None:
        """Give it back."""
        if self._client is not None:
            self._client = None
            await release_client(self._kind)

    async def ask(self, request: ModelRequest) -> ModelReply:
        """One try; a reply or a typed error."""
        if self._client is None:
            raise RuntimeError(f"{self!r} is not open; call open() before ask()")
        builder = (
            self._client.post(self._url)
            .headers(self._headers)
            .header(SESSION_HEADER, _header_text(request.session_id))
            .timeout(self._timeout)
            .body_bytes(self.body_of(request))
        )
        try:
            data = await self._exchange(builder)
        except PyreqwestError as error:
            raise self._transport_error(error) from None
        return self._read(data, request)

    def body_of(self, request: ModelRequest) -> bytes:
        """The request's JSON, put together from fragments: the static parts first and the same bytes each time."""
        parts = [self._prefix]
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

    async def _exchange(self, builder: RequestBuilder) -> memoryview:
        """Send and read; the body of a 200, or the typed error of another status."""
        async with builder.build_streamed() as response:
            if response.status == _OK:
                return await self._body(response)
            body = await _first_bytes(response, _ERROR_BODY_BYTES)
            raise error_of_status(
                response.status,
                body.decode(errors="replace"),
                place=self._place,
                retry_after_seconds=asked_wait_seconds(
                    retry_after_ms=response.get_header("retry-after-ms"),
                    retry_after=response.get_header("retry-after"),
                    date=response.get_header("date"),
                    now=self._clock(),
                ),
                redact=self._redact,
            )

    async def _body(self, response: Response) -> memoryview:
        limit = self._settings.max_reply_bytes
        announced = response.get_header("content-length")
        if announced is not None and announced.isdigit() and int(announced) <= limit:
            return memoryview(await response.bytes())
        data = b"" if announced is not None else await _first_bytes(response, limit + 1)
        if announced is not None or len(data) > limit:
            raise MalformedReply(f"{self._place}: the reply is larger than max_reply_bytes = {limit}", status=_OK)
        return memoryview(data)

    def _read(self, data: memoryview, request: ModelRequest) -> ModelReply:
        try:
            completion = read_completion(data)
            if "choices" not in completion and completion.get("error"):
                raise self._error_inside(completion["error"], data)
            return reply_of(
                completion,
                model=self._settings.model_name,
                make_call_id=self._make_call_id,
                taken_ids=call_ids_in(request.messages),
                keep_reasoning=self._settings.reasoning == "keep",
                wants_alternatives=request.candidates > 1 or request.logprobs,
            )
        except MalformedReply as error:
            shown = self._redact(bytes(data[:_ERROR_BODY_BYTES]).decode(errors="replace"))[:BODY_SHOWN_CHARS]
            message = f"{self._place}: {self._redact(error.message)}"
            raise MalformedReply(message, status=_OK, body=shown) from None

    def _error_inside(self, error: object, data: memoryview) -> ModelError:
        """Some proxies report a failure with status 200 and an `error` object that carries the real one."""
        code = error.get("code") if isinstance(error, dict) else None
        if not isinstance(code, int) or code < 400:  # noqa: PLR2004 - the first error status
            return MalformedReply("the server reported an error instead of an answer")
        body = bytes(data[:_ERROR_BODY_BYTES]).decode(errors="replace")
        return error_of_status(code, body, place=self._place, retry_after_seconds=None, redact=self._redact)

    def _transport_error(self, error: PyreqwestError) -> ModelError:
        cause = self._redact(_innermost(error))
        match error:
            case ConnectTimeoutError() | RequestTimeoutError():
                seconds = self._settings.timeout_seconds
                return ModelTimeout(f"{self._place}: no complete reply within {seconds:g} s ({cause})")
            case ConnectError() if "certificate" in cause.lower():
                way_out = "set ca_file to the CA that signed it, or base_url to the name it was made for"
                return ModelUnavailable(f"{self._place}: TLS failed: {cause}; {way_out}", retryable=False)
            case ConnectError():
                return ModelUnavailable(f"{self._place}: connection failed: {cause}; is the server up at this address?")
            case DecodeError():
                return ModelUnavailable(f"{self._place}: the reply broke off: {cause}")
            case _:
                return ModelUnavailable(f"{self._place}: {cause}")


def _static_prefix(settings: ModelSettings) -> bytes:
    """All that is the same in each request of this model, without the closing brace."""
    limit_key = "max_completion_tokens" if urlsplit(settings.endpoint).hostname == "api.openai.com" else "max_tokens"
    chosen = {
        "model": settings.model_name,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        limit_key: settings.max_tokens,
        "stop": settings.stop,
    }
    return orjson.dumps({key: value for key, value in chosen.items() if value is not None} | settings.extra)[:-1]


def _completions_url(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + "/chat/completions"))


def _place(endpoint: str) -> str:
    """Scheme, host and path: a query may hold a key."""
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _secrets(settings: ModelSettings) -> list[str]:
    values = [value.get_secret_value() for value in settings.headers.values()]
    if settings.api_key is not None:
        values.append(settings.api_key.get_secret_value())
    return [*values, *(part.partition("=")[2] for part in urlsplit(settings.endpoint).query.split("&"))]


def _header_text(text: str) -> str:
    return text if text.isascii() and text.isprintable() else text.encode("unicode_escape").decode()


def _innermost(error: PyreqwestError) -> str:
    causes = getattr(error, "details", {}).get("causes") or []
    return str(causes[-1]["message"]) if causes else error.message


async def _first_bytes(response: Response, limit: int) -> bytes:
    """At most `limit` bytes of the body, however much more would come."""
    chunks: list[bytes] = []
    size = 0
    while size < limit and (chunk := await response.body_reader.read(_CHUNK_BYTES)) is not None:
        chunks.append(bytes(chunk))
        size += len(chunk)
    return b"".join(chunks)[:limit]
