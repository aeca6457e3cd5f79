"""HTTP for mcp's transports: the same guards as for REST, and a cancelled call closes its connection."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import pytest

from engines.network.connection import ConnectionSettings
from engines.network.failures import AddressRefused, FailureKind, NetworkFailure
from engines.network.mcp_http import McpRequestFailed, mcp_http_client, mcp_http_transport
from engines.network.origins import OriginInvalid
from tests.support.raw_server import Asked, RawServer, answer, raw_server, until_closed

HEAD = b"HTTP/1.1 200 OK\r\n"
CREDENTIALS: dict[str, Any] = {
    "bearer_token": "canary",
    "headers": {"X-Tenant": "canary"},
    "api_key": {"name": "key", "value": "can ary", "location": "query"},
}


def client_of(server: RawServer, **keys: Any) -> httpx2.AsyncClient:
    settings = ConnectionSettings.model_validate({"url": f"{server.url}/mcp", **keys})
    return mcp_http_client(settings, timeout=5)


async def failure(server: RawServer, **keys: Any) -> McpRequestFailed:
    async with client_of(server, **keys) as client:
        with pytest.raises(McpRequestFailed) as caught:
            await client.get(f"{server.url}/mcp")
    assert f"127.0.0.1:{server.port}" in caught.value.message
    return caught.value


async def test_sec_s8_credentials_reach_their_own_server_and_no_other() -> None:
    async with raw_server() as own, raw_server() as other, client_of(own, **CREDENTIALS) as client:
        await client.post(f"{own.url}/mcp", headers={"Authorization": "mine"}, json={"a": 1})
        for url in (
            f"{other.url}/mcp",
            f"http://localhost:{own.port}/mcp",
            "file:///etc/passwd",
            "http://169.254.169.254",
        ):
            with pytest.raises(McpRequestFailed) as caught:
                await client.get(url)
            assert caught.value.kind is FailureKind.refused_request

    (request,) = own.requests
    assert other.requests == []
    assert request.headers["authorization"] == ["Bearer canary"]
    assert request.headers["x-tenant"] == ["canary"]
    assert request.headers["accept-encoding"] == ["identity"]
    assert (request.target, request.body) == ("/mcp?key=can%20ary", b'{"a":1}')


async def test_what_fails_is_caught_as_httpx2s_and_as_ours() -> None:
    async with raw_server() as server:
        pass
    told = await failure(server, **CREDENTIALS)

    assert isinstance(told, httpx2.TransportError)
    assert isinstance(told, NetworkFailure)
    assert told.kind is FailureKind.connect
    assert "can" not in told.message.replace("cannot", "")


async def test_sec_s7_redirects_are_not_followed() -> None:
    async with raw_server() as elsewhere:
        said = answer(b"", f"location: {elsewhere.url}/", status="307 Temporary Redirect")
        async with raw_server(said) as server, client_of(server) as client:
            assert (await client.post(f"{server.url}/mcp")).status_code == 307
    assert elsewhere.requests == []


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "017700000001", "127.1"])
async def test_sec_s7_numbers_for_the_loopback_are_refused(host: str) -> None:
    async with raw_server() as server:
        url = f"http://{host}:{server.port}/mcp"
        async with mcp_http_client(ConnectionSettings(url=url), timeout=5) as client:
            with pytest.raises(McpRequestFailed) as caught:
                await client.get(url)
        assert caught.value.kind is FailureKind.refused_address
        assert server.requests == []


async def test_sec_s7_every_connection_goes_to_an_address_that_was_checked() -> None:
    """Public at the first question, private at the second: what DNS rebinding does."""
    addresses: list[Sequence[str]] = [["127.0.0.1"], ["127.0.0.1", "10.0.0.1"]]

    async def names(_host: str, _port: int) -> Sequence[str]:
        return addresses.pop(0)

    async with raw_server(answer(b"{}", "connection: close")) as server:
        url = f"http://mcp.example:{server.port}/mcp"
        settings = ConnectionSettings(url=url, allow_addresses=("127.0.0.1",))
        async with mcp_http_client(settings, timeout=5, resolver=names) as client:
            assert (await client.get(url)).status_code == 200
            with pytest.raises(McpRequestFailed, match=r"10\.0\.0\.1 is private"):
                await client.get(url)
    assert len(server.requests) == 1
    assert server.requests[0].headers["host"] == [f"mcp.example:{server.port}"]


async def test_sec_s7_a_url_that_the_operator_did_not_write_reaches_nothing_private() -> None:
    async with raw_server() as server:
        transport = mcp_http_transport(ConnectionSettings(url=server.url), timeout=5, is_configured=False)
        async with httpx2.AsyncClient(transport=transport, trust_env=False) as client:
            with pytest.raises(McpRequestFailed, match="loopback"):
                await client.get(server.url)
        assert server.requests == []


async def test_sec_s7_the_environments_proxy_takes_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw_server(answer(b"from the proxy")) as proxy, raw_server() as server:
        for name in ("http_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        async with client_of(server) as client:
            await client.get(f"{server.url}/mcp")
        assert (len(proxy.requests), len(server.requests)) == (0, 1)
        async with client_of(server, environment_proxy=True) as client:
            assert (await client.get(f"{server.url}/mcp")).content == b"from the proxy"
        assert (len(proxy.requests), len(server.requests)) == (1, 1)
        settings = ConnectionSettings(url=server.url, environment_proxy=True)
        with pytest.raises(AddressRefused):
            mcp_http_transport(settings, timeout=5, is_configured=False)


async def endless(_: Asked) -> AsyncIterator[bytes]:
    yield HEAD + b"transfer-encoding: chunked\r\n\r\n"
    while True:
        yield b"10000\r\n" + b"x" * 0x10000 + b"\r\n"


async def endless_header(_: Asked) -> AsyncIterator[bytes]:
    yield HEAD + b"x: "
    while True:
        yield b"x" * 100_000


@pytest.mark.parametrize(
    "answering",
    [
        endless,
        endless_header,
        answer(b"x" * 1_001),
        HEAD + b"content-length: 10000000000\r\n\r\n",
        HEAD + b"".join(b"h%d: 1\r\n" % number for number in range(101)) + b"content-length: 0\r\n\r\n",
        HEAD + b"x: " + b"y" * 70_000 + b"\r\ncontent-length: 0\r\n\r\n",
    ],
    ids=["body", "header", "length", "announced", "headers", "long header"],
)
async def test_sec_s17_an_answer_past_its_bounds_is_not_read(answering: Any) -> None:
    async with raw_server(answering) as server:
        told = await failure(server, max_response_bytes=1_000)
        await server.closed.wait()
    assert told.kind is FailureKind.too_large


async def test_sec_s17_packed_answers_are_refused_since_none_was_asked_for() -> None:
    async with raw_server(answer(gzip.compress(b"{}"), "content-encoding: gzip")) as server:
        assert (await failure(server)).kind is FailureKind.protocol


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (b"no http\r\n\r\n", FailureKind.protocol),
        (HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\nab", FailureKind.protocol),
        (b"", FailureKind.lost),
        (HEAD + b"content-length: 100\r\n\r\nabc", FailureKind.lost),
    ],
)
async def test_f22_an_answer_that_breaks_off_or_is_none_is_told_as_such(said: bytes, kind: FailureKind) -> None:
    async def short(_: Asked) -> AsyncIterator[bytes]:
        yield said

    async with raw_server(short) as server:
        assert (await failure(server)).kind is kind


async def test_events_come_as_they_are_sent_and_a_stream_may_be_long() -> None:
    heard = asyncio.Event()

    async def events(_: Asked) -> AsyncIterator[bytes]:
        yield HEAD + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        for _number in range(100):
            yield b"e\r\ndata: 0123456\n\r\n"
            await heard.wait()
        yield b"0\r\n\r\n"

    async with (
        raw_server(events) as server,
        client_of(server, max_response_bytes=100) as client,
        client.stream("GET", f"{server.url}/mcp") as response,
    ):
        size = 0
        async for chunk in response.aiter_bytes():
            heard.set()
            size += len(chunk)
    assert size == 1_400


async def test_e11_a_cancelled_call_closes_its_connection_before_it_is_answered() -> None:
    """That is how a server learns to stop."""
    async with raw_server(lambda _: until_closed(server)) as server, client_of(server) as client:
        task = asyncio.create_task(client.post(f"{server.url}/mcp", json={}))
        await server.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.closed.wait(), 5)


async def test_one_after_another_shares_a_connection() -> None:
    async with raw_server() as server, client_of(server) as client:
        for _ in range(5):
            assert (await client.post(f"{server.url}/mcp", json={})).status_code == 200
    assert server.connections == 1


async def test_a_transport_without_a_url_says_so() -> None:
    with pytest.raises(OriginInvalid, match="no url"):
        mcp_http_transport(ConnectionSettings(), timeout=5)
