"""What stands between mcp's client and the shared transport: one failed request is one failed call."""

import json
from collections.abc import AsyncIterator

import httpx2
import pytest

from engines.mcp.endpoints import Endpoint
from engines.mcp.failures import ServerUnreachable
from engines.mcp.http import SESSION_ID, _Noting, end_session

HTTP, SSE = Endpoint("http", "http://h/mcp?key=canary"), Endpoint("sse", "http://h/sse")


class Scripted(httpx2.AsyncBaseTransport):
    """Answers as it is told, or breaks."""

    def __init__(self, answer: httpx2.Response | Exception) -> None:
        self.answer = answer
        self.asked: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Breaking(httpx2.AsyncByteStream):
    """A body that breaks off."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b'{"jsonrpc"'
        message = "gone"
        raise ConnectionResetError(message)


def post(**headers: str) -> httpx2.Request:
    return httpx2.Request("POST", HTTP.url, headers=headers, content=b"{}")


async def error_of(response: httpx2.Response) -> dict[str, object]:
    error: dict[str, object] = json.loads(await response.aread())["error"]
    return error


async def test_f22_a_request_that_breaks_is_answered_by_an_error_of_its_own() -> None:
    noting = _Noting(Scripted(ConnectionResetError("reset by peer")), HTTP)
    response = await noting.handle_async_request(post())
    assert response.status_code == 503
    assert await error_of(response) == {"code": -32000, "message": "reset by peer"}
    assert not noting.was_answered


async def test_f22_a_body_that_breaks_off_is_an_error_of_its_own() -> None:
    whole = httpx2.Response(200, headers={"content-type": "application/json"}, stream=Breaking())
    response = await _Noting(Scripted(whole), HTTP).handle_async_request(post())
    assert (await error_of(response))["code"] == -32000
    events = httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Breaking())
    response = await _Noting(Scripted(events), HTTP).handle_async_request(post())
    with pytest.raises(httpx2.StreamError, match="gone"):
        await response.aread()


async def test_over_sse_a_message_that_cannot_be_sent_ends_the_connection() -> None:
    for answer in (ConnectionResetError("reset"), httpx2.Response(500)):
        lost: list[str] = []
        noting = _Noting(Scripted(answer), SSE)
        noting.lose = lost.append
        with pytest.raises((ConnectionResetError, ServerUnreachable)):
            await noting.handle_async_request(post())
        assert len(lost) == 1


@pytest.mark.parametrize(
    ("status", "body", "is_gone"),
    [
        (404, "", True),
        (
            400,
            {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "No valid session ID provided"}},
            True,
        ),
        (400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "bad arguments"}}, False),
        (400, "no session", False),
        (500, {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "session store is down"}}, False),
    ],
)
async def test_f3_a_forgotten_session_is_told_from_other_refusals(status: int, body: object, is_gone: bool) -> None:
    for headers, expected in (({SESSION_ID: "s"}, is_gone), ({}, False)):
        answer = (
            httpx2.Response(status, json=body) if isinstance(body, dict) else httpx2.Response(status, text=str(body))
        )
        noting = _Noting(Scripted(answer), HTTP)
        await noting.handle_async_request(post(**headers))
        assert (noting.session_gone is not None) is expected


@pytest.mark.parametrize(("status", "is_ended"), [(200, True), (204, True), (404, True), (405, True), (400, True)])
async def test_f37_a_session_that_is_gone_counts_as_ended(status: int, is_ended: bool) -> None:
    shared = Scripted(httpx2.Response(status))
    await end_session(HTTP, shared, session_id="s")
    assert (shared.asked[0].method, shared.asked[0].headers[SESSION_ID]) == ("DELETE", "s")


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
async def test_f37_a_session_that_the_server_did_not_end_is_told(status: int) -> None:
    with pytest.raises(ConnectionError, match=rf"http://h/mcp: the session was not ended: HTTP {status}"):
        await end_session(HTTP, Scripted(httpx2.Response(status)), session_id="s")
