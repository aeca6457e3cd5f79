"""Requests over real connections: S6, S7 (rebinding, redirects), S8, S17 and how each failure is told."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest
import structlog

from engines.network.connection import ConnectionSettings
from engines.network.failures import AddressRefused, FailureKind, NetworkFailure
from engines.network.http_client import HttpClient
from engines.network.origins import Origin, OriginInvalid
from tests.support.raw_server import Asked, RawServer, answer, raw_server, until_closed

Request = Callable[..., Awaitable[Any]]


def client_of(server: RawServer, **keys: Any) -> HttpClient:
    return HttpClient(ConnectionSettings.model_validate({"url": f"{server.url}/v1", **keys}))


async def asked(server: RawServer, path: str = "/v1/x", **keys: Any) -> Any:
    async with client_of(server, **keys) as client:
        return await client.request("GET", path)


async def failure(server: RawServer, **keys: Any) -> NetworkFailure:
    with pytest.raises(NetworkFailure) as caught:
        await asked(server, **keys)
    assert f"127.0.0.1:{server.port}" in caught.value.message
    return caught.value


async def test_a_request_and_its_answer() -> None:
    async with (
        raw_server(answer(b'{"a": 1}', "Content-Type: application/json; charset=utf-8", status="418 Teapot")) as server,
        client_of(server) as client,
    ):
        got = await client.request("PUT", "/v1/a%2Fb?q=%20x&r=1", headers=[("X-A", "b")], content=b"body")
        await client.request("DELETE", f"{server.url}/v1/y")

    assert (got.status, got.body, got.content_type) == (418, b'{"a": 1}', "application/json")
    first, second = server.requests
    assert (first.method, first.target, first.body) == ("PUT", "/v1/a%2Fb?q=%20x&r=1", b"body")
    assert first.headers["x-a"] == ["b"]
    assert first.headers["host"] == [f"127.0.0.1:{server.port}"]
    assert first.headers["accept-encoding"] == ["gzip, deflate, zstd"]
    assert (second.method, second.target, second.body) == ("DELETE", "/v1/y", b"")
    assert server.connections == 1


async def test_a_packed_answer_is_unpacked() -> None:
    rows = b"".join(b'{"id": %d}' % number for number in range(50_000))
    async with raw_server(answer(gzip.compress(rows), "content-encoding: gzip")) as server:
        assert (await asked(server)).body == rows


# --- S6: headers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [("X-A", "1\r\nX-Admin: 1"), ("X-A", "1\n"), ("X-A", "\u560d\u560a"), ("Host", "evil"), ("Content-Length", "0")],
)
async def test_sec_s6_a_header_that_must_not_leave_stops_the_request(name: str, value: str) -> None:
    async with raw_server() as server, client_of(server) as client:
        with pytest.raises(NetworkFailure) as caught:
            await client.request("GET", "/v1/x", headers=[(name, value)])
        assert caught.value.kind is FailureKind.refused_request
        assert server.requests == []


@pytest.mark.parametrize("name", ["authorization", "Authorization", "X-KEY", "x-tenant"])
async def test_sec_s6_no_caller_replaces_who_is_asking(name: str) -> None:
    keys: dict[str, Any] = {
        "bearer_token": "tok",
        "api_key": {"name": "X-Key", "value": "k"},
        "headers": {"X-Tenant": "7"},
    }
    async with raw_server() as server, client_of(server, **keys) as client:
        with pytest.raises(NetworkFailure, match="given by the configuration alone"):
            await client.request("GET", "/v1/x", headers=[(name, "mine")])
        assert server.requests == []


# --- S8: credentials stay with their origin -----------------------------------------------------------------------

CREDENTIALS: dict[str, Any] = {
    "bearer_token": "canary",
    "headers": {"X-Tenant": "canary"},
    "api_key": {"name": "key", "value": "can ary&", "location": "query"},
}


async def test_sec_s8_credentials_reach_their_own_server() -> None:
    async with raw_server() as server:
        await asked(server, "/v1/x?q=1", **CREDENTIALS)

    (request,) = server.requests
    assert request.headers["authorization"] == ["Bearer canary"]
    assert request.headers["x-tenant"] == ["canary"]
    assert request.target == "/v1/x?q=1&key=can%20ary%26"


async def test_sec_s8_credentials_reach_no_other_server() -> None:
    async with raw_server() as own, raw_server() as other:
        settings = ConnectionSettings.model_validate({"url": own.url, "allow_addresses": ["127.0.0.1"], **CREDENTIALS})
        async with HttpClient(settings, Origin.of(other.url)) as client:
            await client.request("GET", "/x")
        async with HttpClient(settings) as client:
            with pytest.raises(OriginInvalid, match="another server"):
                await client.request("GET", f"{other.url}/x")

    assert own.requests == []
    assert "canary" not in str(other.requests)
    assert "can" not in other.requests[0].target


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_sec_s7_redirects_are_answers_and_are_not_followed(status: str) -> None:
    async with raw_server() as elsewhere:
        places = [
            f"{elsewhere.url}/",
            f"//127.0.0.1:{elsewhere.port}/",
            "file:///etc/passwd",
            "http://169.254.169.254/",
        ]
        for place in places:
            async with raw_server(answer(b"", f"location: {place}", status=status)) as server:
                got = await asked(server, **CREDENTIALS)
            assert got.status == int(status[:3])
            assert got.headers["location"] == place
            assert len(server.requests) == 1
    assert elsewhere.requests == []


# --- S7: addresses ------------------------------------------------------------------------------------------------


class Names:
    """A name server whose answers a test changes."""

    def __init__(self, *addresses: str) -> None:
        self.addresses: Sequence[str] = addresses
        self.asked = 0

    async def __call__(self, _host: str, _port: int) -> Sequence[str]:
        self.asked += 1
        if not self.addresses:
            raise OSError(2, "Name or service not known")
        return self.addresses


def named(server: RawServer, names: Names, *allowed: str, seconds: float = 60.0) -> HttpClient:
    settings = ConnectionSettings(url=f"http://api.example:{server.port}", allow_addresses=allowed)
    return HttpClient(settings, resolver=names, resolve_again_seconds=seconds)


async def test_sec_s7_the_connection_goes_to_the_address_that_was_checked() -> None:
    names = Names("127.0.0.1")
    async with raw_server() as server, named(server, names, "127.0.0.1") as client:
        for _ in range(3):
            await client.request("GET", "/x")

    assert names.asked == 1
    assert {request.headers["host"][0] for request in server.requests} == {f"api.example:{server.port}"}


async def test_sec_s7_a_name_that_moves_to_a_private_address_is_refused() -> None:
    """Public at the first question, private at the second: what DNS rebinding does."""
    names = Names("127.0.0.1")
    async with raw_server() as server, named(server, names, "127.0.0.1", seconds=0) as client:
        await client.request("GET", "/x")
        names.addresses = ["10.0.0.1"]
        with pytest.raises(AddressRefused, match=r"api\.example: its address 10\.0\.0\.1 is private"):
            await client.request("GET", "/x")
        names.addresses = ["127.0.0.1", "169.254.169.254"]
        with pytest.raises(AddressRefused, match=r"169\.254\.169\.254"):
            await client.request("GET", "/x")

    assert len(server.requests) == 1


async def test_sec_s7_a_name_is_asked_for_once_and_not_again_when_connecting() -> None:
    """The second answer would lead elsewhere; nobody hears it."""
    names = Names("127.0.0.1")

    async def first_only(host: str, port: int) -> Sequence[str]:
        found = await names(host, port)
        names.addresses = ["10.0.0.1"]
        return found

    async with raw_server() as server:
        settings = ConnectionSettings(url=f"http://api.example:{server.port}", allow_addresses=("127.0.0.1",))
        async with HttpClient(settings, resolver=first_only) as client:
            assert (await client.request("GET", "/x")).status == 200


async def test_a_name_that_moves_takes_its_client_along() -> None:
    names = Names("127.0.0.1")
    async with (
        raw_server() as first,
        raw_server(host="127.0.0.2", port=first.port) as second,
        named(first, names, "127.0.0.0/8", seconds=0) as client,
    ):
        await client.request("GET", "/x")
        names.addresses = ["127.0.0.2"]
        await client.request("GET", "/x")
    assert (len(first.requests), len(second.requests)) == (1, 1)


async def test_a_name_that_cannot_be_resolved_again_stays_where_it_was() -> None:
    names = Names("127.0.0.1")
    async with raw_server() as server, named(server, names, "127.0.0.1", seconds=0) as client:
        await client.request("GET", "/x")
        names.addresses = []
        with structlog.testing.capture_logs() as events:
            await client.request("GET", "/x")
    assert [event["log_level"] for event in events] == ["warning"]
    assert len(server.requests) == 2


async def test_the_next_address_is_tried_when_nobody_listens_at_the_first() -> None:
    names = Names("127.0.0.3", "127.0.0.2", "127.0.0.1")
    async with raw_server() as server, named(server, names, "127.0.0.0/8") as client:
        got = await asyncio.gather(*(client.request("POST", "/x", content=b"{}") for _ in range(5)))
    assert [each.status for each in got] == [200] * 5
    assert len(server.requests) == 5


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "017700000001", "127.1"])
async def test_sec_s7_numbers_for_the_loopback_are_refused_unless_it_is_allowed(host: str) -> None:
    async with raw_server() as server:
        url = f"http://{host}:{server.port}"
        async with HttpClient(ConnectionSettings(url=url)) as client:
            with pytest.raises(AddressRefused, match=r"127\.0\.0\.1 is loopback"):
                await client.request("GET", "/x")
        assert server.requests == []
        async with HttpClient(ConnectionSettings(url=url, allow_addresses=("127.0.0.1",))) as client:
            assert (await client.request("GET", "/x")).status == 200


async def test_sec_s7_a_server_that_a_document_names_has_no_right_to_this_machine() -> None:
    async with raw_server() as server:
        for host in ("127.0.0.1", "localhost", "localhost."):
            async with HttpClient(ConnectionSettings(), Origin.of(f"http://{host}:{server.port}")) as client:
                with pytest.raises(AddressRefused):
                    await client.request("GET", "/x")
        assert server.requests == []


async def test_sec_s7_the_environments_proxy_takes_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw_server(answer(b"from the proxy")) as proxy, raw_server() as server:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        await asked(server)
        assert (len(proxy.requests), len(server.requests)) == (0, 1)

        assert (await asked(server, environment_proxy=True)).body == b"from the proxy"
        assert (len(proxy.requests), len(server.requests)) == (1, 1)

        async with HttpClient(ConnectionSettings(environment_proxy=True), Origin.of("http://127.0.0.1:1")) as client:
            with pytest.raises(AddressRefused):
                await client.request("GET", "/latest/meta-data")
        assert len(proxy.requests) == 1

        monkeypatch.setenv("no_proxy", "127.0.0.1")
        await asked(server, environment_proxy=True)
        assert (len(proxy.requests), len(server.requests)) == (1, 2)


# --- S17 and F24: what a server may do --------------------------------------------------------------------------------


async def endless(_: Asked) -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    while True:
        yield b"10000\r\n" + b"x" * 0x10000 + b"\r\n"


async def endless_header(_: Asked) -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nx: "
    while True:
        yield b"x" * 100_000


async def endless_trailers(_: Asked) -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
    while True:
        yield b"t: 1\r\n" * 1_000


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "answering",
    [
        endless,
        endless_header,
        endless_trailers,
        answer(b"x" * 2_000),
        HEAD + b"content-length: 10000000000\r\n\r\n" + b"x" * 1_000_000,
        HEAD + b"".join(b"h%d: 1\r\n" % number for number in range(100_000)) + b"content-length: 0\r\n\r\n",
        HEAD + b"x: " + b"y" * 70_000 + b"\r\ncontent-length: 0\r\n\r\n",
        answer(gzip.compress(b"\0" * 100_000_000), "content-encoding: gzip"),
        answer(gzip.compress(b"\0" * 1_001), "content-encoding: gzip"),
    ],
    ids=["body", "header", "trailers", "length", "announced", "headers", "long header", "bomb", "one too many"],
)
async def test_sec_s17_an_answer_past_its_bounds_is_not_read(answering: Any) -> None:
    async with raw_server(answering) as server:
        told = await failure(server, max_response_bytes=1_000)
    assert told.kind is FailureKind.too_large
    assert len(told.message) < 300


async def test_sec_s17_encodings_that_were_not_asked_for_are_refused() -> None:
    for encoding in ("br", "gzip, gzip"):
        async with raw_server(answer(b"x", f"content-encoding: {encoding}")) as server:
            assert (await failure(server)).kind is FailureKind.protocol


async def test_sec_s17_a_byte_now_and_then_ends_at_the_total_deadline() -> None:
    """Each single read comes in time; the whole does not."""

    async def slow(_: Asked) -> AsyncIterator[bytes]:
        yield HEAD + b"content-length: 100000\r\n\r\n"
        while True:
            yield b"x"
            await asyncio.sleep(0.02)

    async with raw_server(slow) as server:
        told = await failure(server, timeout=0.3)
        await server.closed.wait()
    assert told.kind is FailureKind.timeout
    assert told.message == f"127.0.0.1:{server.port}: no complete answer within 0.3 s"
    assert told.may_pass


async def test_sec_s17_informational_answers_without_end_end_at_the_deadline() -> None:
    async def infos(_: Asked) -> AsyncIterator[bytes]:
        while True:
            yield b"HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n" * 100
            await asyncio.sleep(0.01)

    async with raw_server(infos) as server:
        assert (await failure(server, timeout=0.3)).kind is FailureKind.timeout


async def test_a_request_that_timed_out_holds_no_connection() -> None:
    """Cancelling the wait alone would leave the transport's own request running (and its slot taken)."""
    async with raw_server(lambda _: until_closed(server)) as server, client_of(server) as client:
        with pytest.raises(NetworkFailure):
            await client.request("GET", "/v1/x", timeout_seconds=0.2)
        await asyncio.wait_for(server.closed.wait(), 5)


async def test_cancelling_is_not_swallowed() -> None:
    async with raw_server(lambda _: until_closed(server)) as server, client_of(server) as client:
        task = asyncio.create_task(client.request("GET", "/v1/x", timeout_seconds=1))
        await server.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(
    ("answering", "kind"),
    [
        (b"no http\r\n\r\n", FailureKind.protocol),
        (HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\nab", FailureKind.protocol),
        (HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n", FailureKind.protocol),
        (HEAD + b"x y: 1\r\n\r\n", FailureKind.protocol),
        (answer(b"x", "content-encoding: gzip"), FailureKind.protocol),
    ],
)
async def test_f24_an_answer_that_is_no_http_is_told_as_such(answering: bytes, kind: FailureKind) -> None:
    async with raw_server(answering) as server:
        told = await failure(server)
    assert told.kind is kind
    assert not told.nothing_was_sent
    assert not told.may_pass


@pytest.mark.parametrize("said", [b"", HEAD, HEAD + b"content-length: 100\r\n\r\nabc"])
async def test_f24_a_connection_that_ends_early_is_lost_and_may_have_been_answered(said: bytes) -> None:
    async def short(_: Asked) -> AsyncIterator[bytes]:
        yield said

    async with raw_server(short) as server:
        told = await failure(server, **CREDENTIALS)
    assert told.kind is FailureKind.lost
    assert not told.nothing_was_sent
    assert told.may_pass


async def test_nobody_there_is_no_connection_and_nothing_was_sent() -> None:
    async with raw_server() as server:
        pass
    told = await failure(server, **CREDENTIALS)

    assert told.kind is FailureKind.connect
    assert told.nothing_was_sent
    assert told.may_pass


async def test_sec_s11_no_failure_tells_a_secret() -> None:
    """The key in the query above all: the transport's own messages quote the URL."""
    answers: list[Any] = [
        endless,
        b"no http\r\n\r\n",
        HEAD + b"content-length: 9\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nx y: 1\r\n\r\n",
    ]
    told = []
    for each in answers:
        async with raw_server(each) as server:
            told.append(await failure(server, max_response_bytes=1_000, timeout=1, **CREDENTIALS))
    async with raw_server() as gone:
        pass
    told.append(await failure(gone, **CREDENTIALS))

    for each in told:
        assert "can" not in each.message.replace("cannot", "")
        assert each.__suppress_context__ or each.__context__ is None


@pytest.mark.parametrize(
    "url", ["http://evil.example/", "//evil.example/", "/v1/../x", "/v1/%2e%2e/x", "/a b", "x", ""]
)
async def test_sec_s7_no_request_leaves_the_origin_or_its_path(url: str) -> None:
    async with raw_server() as server, client_of(server) as client:
        with pytest.raises(OriginInvalid) as caught:
            await client.request("GET", url)
        assert caught.value.kind is FailureKind.refused_request
        assert server.requests == []


async def test_a_client_without_a_url_says_so() -> None:
    with pytest.raises(OriginInvalid, match="no url"):
        HttpClient(ConnectionSettings())


async def test_a_closed_client_may_be_opened_again() -> None:
    async with raw_server() as server:
        client = client_of(server)
        for _ in range(2):
            async with client:
                assert (await client.request("GET", "/v1/x")).status == 200
        await client.close()
