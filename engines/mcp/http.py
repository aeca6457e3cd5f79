"""A server behind a URL: a light client for each connection, over the transport that all share."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
import structlog
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR

from engines.mcp.endpoints import Endpoint, shown
from engines.mcp.failures import ServerUnreachable, cause_of
from engines.mcp.text import printable
from engines.plain import JSONObject, compact

log = structlog.get_logger(__name__)

SESSION_ID = "mcp-session-id"
_PROTOCOL_VERSION = "mcp-protocol-version"
_STREAM_READ_SECONDS = 300.0
_LONGEST_ERROR_BODY = 64 << 10
_GONE = frozenset({400, 404, 405, 410, 501})
_GONE_WITHOUT_A_DOUBT = 404
_FIRST_ERROR = 400


class HttpLink:
    """One connection's way to its server; knows the session that the server gave it."""

    def __init__(self, endpoint: Endpoint, shared: httpx2.AsyncBaseTransport, *, max_bytes: int) -> None:
        self._endpoint = endpoint
        self._max_bytes = max_bytes
        self._transport = _Noting(shared, endpoint)

    @property
    def name(self) -> str:
        """The URL without secrets."""
        return self._endpoint.name

    @property
    def session_gone(self) -> str | None:
        """What the server said when it no longer knew the session; None while it knows it."""
        return self._transport.session_gone

    @property
    def handle(self) -> JSONObject | None:
        """What another process needs to end the session: plain JSON; None when there is nothing to end."""
        if self._transport.session_id is None:
            return None
        return {"mcp_session_id": self._transport.session_id, "url": self._endpoint.name}

    @property
    def was_answered(self) -> bool:
        """Whether anybody answered at all, if only to refuse."""
        return self._transport.was_answered

    @property
    def trouble(self) -> str | None:
        """The last answer that was none: `HTTP 401 Unauthorized`."""
        return self._transport.trouble

    def streams(self, lose: Callable[[str], None]) -> AbstractAsyncContextManager[Any]:
        """Return mcp's transport of the endpoint's kind."""
        if self._endpoint.kind == "http":
            # The session is ended by `end_session`, which tells what went wrong; mcp's own way hides it.
            return streamable_http_client(
                self._endpoint.url,
                http_client=self._client(),
                terminate_on_close=False,
                max_sse_event_size=self._max_bytes,
            )
        self._transport.lose = lose
        return sse_client(self._endpoint.url, httpx_client_factory=self._client, sse_read_timeout=_STREAM_READ_SECONDS)

    def _client(
        self, headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: Any = None
    ) -> httpx2.AsyncClient:
        """Return a client of this connection alone; it may be closed without closing what others use."""
        return _LightClient(self._transport, timeout=timeout or httpx2.Timeout(None))


async def end_session(endpoint: Endpoint, shared: httpx2.AsyncBaseTransport, *, session_id: str) -> None:
    """Tell the server that a session is over; harmless when it knows none. ConnectionError when it cannot be told."""
    request = httpx2.Request("DELETE", endpoint.url, headers={SESSION_ID: session_id})
    response = await shared.handle_async_request(request)
    await response.aclose()
    if response.is_success or response.status_code in _GONE:
        return
    raise ConnectionError(f"{endpoint.name}: the session was not ended: HTTP {response.status_code}")


class _LightClient(httpx2.AsyncClient):
    """The part of httpx2's client that mcp's transports use: no cookies, no auth, and a fifth less CPU a call."""

    def __init__(self, transport: httpx2.AsyncBaseTransport, *, timeout: httpx2.Timeout) -> None:
        super().__init__(transport=transport, trust_env=False)
        self._to = transport
        self._extensions = {"timeout": timeout.as_dict()}
        self._urls: dict[str, httpx2.URL] = {}

    def build_request(self, method: str, url: httpx2.URL | str, **parts: Any) -> httpx2.Request:
        """Make a request of what mcp gives: `headers`, and `json` for the body."""
        read = self._urls.get(str(url))
        if read is None:
            read = self._urls[str(url)] = httpx2.URL(url)
        content = compact(parts["json"]).encode() if "json" in parts else b""
        headers = {"host": read.netloc.decode("ascii"), **(parts.get("headers") or {})}
        if content:
            headers |= {"content-type": "application/json", "content-length": str(len(content))}
        # By `stream` and not by `content`: with that the headers would be gone through twice more.
        return httpx2.Request(
            method, read, headers=headers, stream=httpx2.ByteStream(content), extensions=self._extensions
        )

    async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
        """Send; a redirect is an answer like any other and not followed (rule S7)."""
        response = await self._to.handle_async_request(request)
        response.request = request
        return response


class _Noting(httpx2.AsyncBaseTransport):
    """Notes the session's id and the server's troubles, and keeps one failed request from ending the whole connection.

    mcp's streamable HTTP lets an exception of one POST end every call under way. So a POST that fails is answered here
    by the error that JSON-RPC would have sent.
    """

    def __init__(self, shared: httpx2.AsyncBaseTransport, endpoint: Endpoint) -> None:
        self._shared = shared
        self._is_streamable = endpoint.kind == "http"
        self.lose: Callable[[str], None] | None = None
        self.session_id: str | None = None
        self.session_gone: str | None = None
        self.trouble: str | None = None
        self.was_answered = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._shared.handle_async_request(request)
        except Exception as error:
            self.trouble = cause_of(error)
            if request.method != "POST":
                raise
            if self.lose is not None:  # Over SSE nobody waits for the POST's answer: the connection is of no use.
                self.lose(self.trouble)
                raise
            return _error(503, CONNECTION_CLOSED, self.trouble)
        self.was_answered = True
        if not response.is_success:
            return await self._refusal(request, response)
        if request.method != "POST" or not self._is_streamable:
            return response
        self.session_id = response.headers.get(SESSION_ID, self.session_id)
        if response.headers.get("content-type", "").startswith("application/json"):
            return await self._whole(response)
        response.stream = _Tolerant(response.stream)
        return response

    async def aclose(self) -> None:
        """Close nothing: the transport inside is shared."""

    async def _whole(self, response: httpx2.Response) -> httpx2.Response:
        """Read a JSON answer here, where its breaking off becomes the call's own error."""
        try:
            body = b"".join([chunk async for chunk in response.stream])  # type: ignore[union-attr]  # an async one
        except Exception as error:  # noqa: BLE001 - whatever ends a connection
            self.trouble = cause_of(error)
            return _error(503, CONNECTION_CLOSED, self.trouble)
        finally:
            await response.aclose()
        return httpx2.Response(response.status_code, headers=response.headers, content=body)

    async def _refusal(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Turn a refusal into one whose cause is not lost: mcp's client tells only JSON-RPC's own errors."""
        self.trouble = _status(request, response)
        if not self._is_streamable:
            await response.aclose()
            if self.lose is not None and request.method == "POST":
                self.lose(self.trouble)
            raise ServerUnreachable(self.trouble)  # Before mcp's client does, whose words hold the whole URL.
        if request.method != "POST":
            return response  # Many servers offer no stream of their own.
        told = _json_rpc_error(await _bounded(response))
        if told:
            self.trouble += f": {printable(told['message'], 200)}"
        if SESSION_ID in request.headers and _knows_no_session(response.status_code, told):
            self.session_gone = self.trouble
        if told is None and response.status_code == 404:  # noqa: PLR2004 - mcp's client tells an unknown method by it
            return httpx2.Response(404, request=request)
        code = int(told["code"]) if told else CONNECTION_CLOSED if response.is_server_error else INTERNAL_ERROR
        return _error(response.status_code, code, told["message"] if told else self.trouble, told)


class _Tolerant(httpx2.AsyncByteStream):
    """A body whose breaking off is an error that mcp's client expects."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._inner:
                yield chunk
        except httpx2.StreamError:
            raise
        except Exception as error:
            raise httpx2.StreamError(cause_of(error)) from error

    async def aclose(self) -> None:
        await self._inner.aclose()


def _error(status: int, code: int, message: str, told: JSONObject | None = None) -> httpx2.Response:
    error = told or {"code": code, "message": message}
    # Below 400 mcp's client would look for the answer's id, which an error may leave out.
    return httpx2.Response(
        status if status >= _FIRST_ERROR else 502, json={"jsonrpc": "2.0", "id": None, "error": error}
    )


def _status(request: httpx2.Request, response: httpx2.Response) -> str:
    said = f"HTTP {response.status_code} {response.reason_phrase}".rstrip()
    if not response.has_redirect_location:
        return said
    place = shown(str(request.url.join(response.headers["location"])))
    return f"{said}: it leads to {printable(place, 200)}, and redirects are not followed; give that URL if it is meant"


async def _bounded(response: httpx2.Response) -> bytes:
    """Return the head of a refusal's body; what breaks while it is read is no matter."""
    body = b""
    try:
        async for chunk in response.stream:  # type: ignore[union-attr]  # an async one
            body += chunk
            if len(body) > _LONGEST_ERROR_BODY:
                break
    except Exception as error:  # noqa: BLE001 - the status says enough
        log.debug("a refusal's body could not be read", cause=cause_of(error))
    finally:
        await response.aclose()
    return body[:_LONGEST_ERROR_BODY]


def _json_rpc_error(body: bytes) -> JSONObject | None:
    """Return the error object of a JSON-RPC answer; None for any other body."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    error = answer.get("error") if isinstance(answer, dict) and answer.get("jsonrpc") == "2.0" else None
    is_error = isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
    return error if is_error else None


def _knows_no_session(status: int, told: JSONObject | None) -> bool:
    """Whether a server has forgotten the session: 404 says so, some say 400 and "session" (the protocol's own SDK)."""
    if status == _GONE_WITHOUT_A_DOUBT:
        return True
    return status == 400 and told is not None and "session" in told["message"].lower()  # noqa: PLR2004
