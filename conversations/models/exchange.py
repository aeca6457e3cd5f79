"""One exchange with a model server over HTTP: bytes there and bytes back, and a typed error for everything else."""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from urllib.parse import urlsplit, urlunsplit

from pyreqwest.client import Client
from pyreqwest.exceptions import (
    ConnectError,
    ConnectTimeoutError,
    DecodeError,
    PyreqwestError,
    RequestTimeoutError,
)
from pyreqwest.response import Response

from conversations.errors import MalformedReply, ModelError, ModelTimeout, ModelUnavailable
from conversations.models.connections import ConnectionKind, release_client, take_client
from conversations.models.redaction import BODY_SHOWN_CHARS, redactor
from conversations.models.refusals import error_of_status
from conversations.models.settings import ModelSettings
from engines.network.retry_after import asked_wait_seconds

SESSION_HEADER = "X-Session-ID"
OK = 200
EVENT_STREAM = "text/event-stream"
_FIRST_ERROR_STATUS = 400
_CHUNK_BYTES = 1 << 16
_ERROR_BODY_BYTES = 1 << 16

Feed = Callable[[bytes], None]


class Exchange:
    """Posts to one URL of one server; safe to use from many conversations at once."""

    def __init__(
        self,
        settings: ModelSettings,
        *,
        path: str,
        headers: Mapping[str, str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`path` is put behind the endpoint's own; connects to nothing yet."""
        self._settings, self._clock = settings, clock
        self._kind = ConnectionKind.of(settings)
        self._client: Client | None = None
        parts = urlsplit(settings.endpoint)
        self._url = urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))
        # A query may hold a key, so it is not part of the place that errors name.
        self.place = f"model {settings.model_name!r} at {parts.scheme}://{parts.netloc}{parts.path}"
        self._timeout = timedelta(seconds=settings.timeout_seconds)
        own = {name: value.get_secret_value() for name, value in settings.headers.items()}
        self._headers = {**headers, **own, "Content-Type": "application/json"}
        self.redact = redactor(_secrets(settings))

    async def open(self) -> None:
        """Take the process's shared client."""
        if self._client is None:
            self._client = await take_client(self._kind)

    async def close(self) -> None:
        """Give it back."""
        if self._client is not None:
            self._client = None
            await release_client(self._kind)

    async def post(self, body: bytes, session_id: str, feed: Feed | None = None) -> memoryview | None:
        """Return the body of a 200; None when it came as events and `feed` has taken them, chunk by chunk.

        Raises a ModelError for any other status, a broken connection, a reply that is too long.
        """
        if self._client is None:
            raise RuntimeError(f"{self.place} is not open; call open() before ask()")
        builder = (
            self._client.post(self._url)
            .headers(self._headers)
            .header(SESSION_HEADER, _header_text(session_id))
            .timeout(self._timeout)
            .body_bytes(body)
        )
        try:
            async with builder.build_streamed() as response:
                if response.status != OK:
                    raise await self._refusal(response)
                if feed is not None and (response.get_header("content-type") or "").startswith(EVENT_STREAM):
                    await self._feed(response, feed)
                    return None
                return await self._body(response)
        except PyreqwestError as error:
            raise self._transport_error(error) from None

    def malformed(self, error: MalformedReply, data: bytes | memoryview) -> MalformedReply:
        """The error with the place and the beginning of what the server said, redacted."""
        shown = self.redact(bytes(data[:_ERROR_BODY_BYTES]).decode(errors="replace"))[:BODY_SHOWN_CHARS]
        return MalformedReply(f"{self.place}: {self.redact(error.message)}", status=OK, body=shown)

    def error_inside(self, error: object, data: bytes | memoryview) -> ModelError:
        """Some proxies report a failure with status 200 and an `error` object that carries the real one."""
        code = error.get("code") if isinstance(error, dict) else None
        if not isinstance(code, int) or code < _FIRST_ERROR_STATUS:
            return MalformedReply("the server reported an error instead of an answer")
        return self.error_of(code, bytes(data[:_ERROR_BODY_BYTES]))

    def error_of(self, status: int, body: bytes, *, retry_after_seconds: float | None = None) -> ModelError:
        """The typed error that a status and its body mean."""
        text = body.decode(errors="replace")
        return error_of_status(
            status, text, place=self.place, retry_after_seconds=retry_after_seconds, redact=self.redact
        )

    async def _refusal(self, response: Response) -> ModelError:
        body = await _first_bytes(response, _ERROR_BODY_BYTES)
        wait = asked_wait_seconds(
            retry_after_ms=response.get_header("retry-after-ms"),
            retry_after=response.get_header("retry-after"),
            date=response.get_header("date"),
            now=self._clock(),
        )
        return self.error_of(response.status, body, retry_after_seconds=wait)

    async def _body(self, response: Response) -> memoryview:
        limit = self._settings.max_reply_bytes
        announced = response.get_header("content-length")
        if announced is not None and announced.isdigit() and int(announced) <= limit:
            return memoryview(await response.bytes())
        data = b"" if announced is not None else await _first_bytes(response, limit + 1)
        if announced is not None or len(data) > limit:
            raise self._too_large()
        return memoryview(data)

    async def _feed(self, response: Response, feed: Feed) -> None:
        size = 0
        while (chunk := await response.body_reader.read(_CHUNK_BYTES)) is not None:
            size += len(chunk)
            if size > self._settings.max_reply_bytes:
                raise self._too_large()
            feed(bytes(chunk))

    def _too_large(self) -> MalformedReply:
        limit = self._settings.max_reply_bytes
        return MalformedReply(f"{self.place}: the reply is larger than max_reply_bytes = {limit}", status=OK)

    def _transport_error(self, error: PyreqwestError) -> ModelError:
        cause = self.redact(_innermost(error))
        match error:
            case ConnectTimeoutError() | RequestTimeoutError():
                seconds = self._settings.timeout_seconds
                return ModelTimeout(f"{self.place}: no complete reply within {seconds:g} s ({cause})")
            case ConnectError() if "certificate" in cause.lower():
                way_out = "set ca_file to the CA that signed it, or base_url to the name it was made for"
                return ModelUnavailable(f"{self.place}: TLS failed: {cause}; {way_out}", retryable=False)
            case ConnectError() if "fatal alert" in cause.lower():
                way_out = (
                    "the server refuses this client: it needs TLS 1.2 or later, and perhaps client_certificate_file"
                )
                return ModelUnavailable(f"{self.place}: TLS failed: {cause}; {way_out}", retryable=False)
            case ConnectError():
                return ModelUnavailable(f"{self.place}: connection failed: {cause}; is the server up at this address?")
            case DecodeError():
                return ModelUnavailable(f"{self.place}: the reply broke off: {cause}")
            case _:
                return ModelUnavailable(f"{self.place}: {cause}")


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
