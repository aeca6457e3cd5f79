"""The `rest` engine against servers: what goes over the wire, and what comes of the answer (rules D46 to D59)."""

import asyncio
import base64
import gzip
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from engines.errors import ConfigurationInvalid
from engines.kind_settings import EngineParts
from engines.registry import ToolRegistry
from engines.rest.engine import RestToolEngine
from engines.tool import ErrorType, Tool, ToolCall
from engines.toolset import Toolset
from tests.support.http_backend import Received, Reply, http_backend
from tests.unit.engines.rest.rest_tools import NAMESPACE, Pauses, asked, call, engine_of, opened, tool
from tests.unit.engines.stage import no_speak


def one_after_the_other(*replies: Reply | bytes | None) -> Callable[[Received], Awaitable[Reply | bytes | None]]:
    waiting: Iterator[Reply | bytes | None] = iter(replies)

    async def answer(_: Received) -> Reply | bytes | None:
        return next(waiting)

    return answer


# Who asks (rule D47)


@pytest.mark.parametrize(
    ("settings", "header", "value"),
    [
        ({"bearer_token": "tok-1"}, "authorization", "Bearer tok-1"),
        ({"basic_auth": "user:p:w"}, "authorization", f"Basic {base64.b64encode(b'user:p:w').decode()}"),
        ({"api_key": {"name": "X-Key", "value": "k-1"}}, "x-key", "k-1"),
        ({"headers": {"X-Tenant": "acme"}}, "x-tenant", "acme"),
        ({"headers": {"Accept": "text/csv"}}, "accept", "text/csv"),
        ({}, "accept", "application/json, text/plain;q=0.9, */*;q=0.5"),
        ({}, "user-agent", "parley"),
    ],
)
async def test_d47_headers_that_say_who_asks(settings: dict[str, Any], header: str, value: str) -> None:
    async with http_backend() as backend:
        assert not (await asked([tool()], call(), url=backend.url, **settings)).is_error
        assert backend.last.header(header) == value


async def test_d47_an_api_key_in_the_query_stands_beside_the_arguments() -> None:
    async with http_backend() as backend:
        key = {"name": "api key", "value": "k&1", "location": "query"}
        await asked([tool()], call(q="x"), url=backend.url, api_key=key)
        assert backend.last.query == [("q", "x"), ("api key", "k&1")]


async def test_d47_a_server_that_is_slower_than_the_timeout_is_left() -> None:
    done = asyncio.Event()

    async def slow(_: Received) -> Reply:
        await done.wait()
        return Reply({})

    async with http_backend(slow) as backend:
        result = await asked([tool()], call(), url=backend.url, timeout=0.05, defaults={"max_retries": 5})
        assert (result.error_type, len(backend.received)) == (ErrorType.timeout, 1)
        assert result.error == f"127.0.0.1:{backend.port}: no complete answer within 0.05 s"
        done.set()


def parts(settings: dict[str, Any], *tools: Tool) -> EngineParts:
    toolsets = (Toolset(NAMESPACE, "api", tools),)
    return EngineParts(
        "api", settings, toolsets, ToolRegistry(toolsets), no_speak, lambda _name, _at: pytest.fail("nothing routes")
    )


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"namespaces": ["shop", "shpo"]}, "no tools of namespace 'shpo' come here; did you mean 'shop'?"),
        ({"namespaces": []}, "namespace 'shop' is answered by this engine and not listed; list it"),
        ({"sessions": {"x": {"setup": {"path": "/s"}}}}, "no tools of namespace 'x' come here; known: shop"),
        ({"sessions": {"shop": {"setup": {"path": "/../s"}}}}, "goes up by dots"),
        ({"url": "ftp://h"}, "must be an http:// or https:// URL"),
    ],
)
def test_d47_a_block_that_does_not_fit_is_refused(more: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        RestToolEngine.from_parts(parts({"type": "rest", "url": "http://h", **more}, tool()))
    assert told in str(caught.value)
    assert str(caught.value).startswith("tools.engines.api")


def test_d58_a_recipe_whose_tools_have_no_operation_or_server_is_refused_before_it_runs() -> None:
    with pytest.raises(ConfigurationInvalid, match="'shop::get' says no server"):
        RestToolEngine.from_parts(parts({"type": "rest"}, tool()))
    with pytest.raises(ConfigurationInvalid, match=r"metadata\.rest_method is missing"):
        RestToolEngine.from_parts(parts({"type": "rest", "url": "http://h"}, Tool("get", NAMESPACE)))


# Where to (rule D49)


async def test_d49_the_engines_url_wins_over_the_tools() -> None:
    async with http_backend() as backend:
        mine = tool(base_url="http://127.0.0.1:1/nobody", path="/orders/{id}")
        result = await asked([mine], call(id="7"), url=f"{backend.url}/api/v3/")
        assert result.result["path"] == "/api/v3/orders/7"


async def test_d49_without_a_url_each_tool_has_its_own_server() -> None:
    async with http_backend() as one, http_backend() as two:
        tools = [tool("a", base_url=f"{one.url}/x"), tool("b", base_url=f"{two.url}/y/")]
        async with opened(engine_of(tools)) as engine:
            results = await engine.execute("s", [call("a"), call("b")])
        assert [result.result["path"] for result in results] == ["/x/orders", "/y/orders"]


async def test_d58_a_tool_without_a_server_or_an_operation_is_an_error_result() -> None:
    result = await asked([tool()], call())
    assert (result.error_type, result.error) == (
        ErrorType.execution,
        "tool 'shop::get' says no server (rest_base_url); say the engine's url",
    )
    result = await asked([Tool("get", NAMESPACE)], call(), url="http://127.0.0.1:1")
    assert "metadata.rest_method is missing" in str(result.error)


async def test_sec_s7_a_host_that_only_a_document_names_has_no_right_to_private_addresses() -> None:
    async with http_backend() as backend:
        from_document = tool(base_url=backend.url, base_from="document")
        result = await asked([from_document], call())
        assert (result.error_type, backend.received) == (ErrorType.permission, [])
        assert "allow_addresses: [127.0.0.1]" in str(result.error)
        assert not (await asked([from_document], call(), allow_addresses=["127.0.0.1"])).is_error
        assert not (await asked([tool(base_url=backend.url)], call())).is_error


@pytest.mark.parametrize("url", ["file:///etc/passwd", "//127.0.0.1", "gopher://h", "/api/v3", "http://a@127.0.0.1"])
async def test_sec_s7_a_base_url_that_is_none_is_an_error_result(url: str) -> None:
    result = await asked([tool(base_url=url)], call())
    assert result.error_type is ErrorType.execution
    assert "say the engine's url" in str(result.error)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("place", ["{url}/stolen", "http://169.254.169.254/", "file:///etc/passwd", "//evil.example"])
async def test_sec_s7_redirects_are_not_followed(status: int, place: str) -> None:
    async with http_backend() as other:
        location = place.format(url=other.url)
        async with http_backend(one_after_the_other(Reply({}, status, {"location": location}))) as backend:
            result = await asked([tool()], call(), url=backend.url, bearer_token="tok-1")
        assert result.error == f"HTTP {status}: the server answers with a redirect, which is not followed"
        assert other.received == []


# What comes back (rule D58)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        (Reply({"a": [1]}), {"a": [1]}),
        (Reply(b"plain", headers={"content-type": "text/plain"}), "plain"),
        (Reply(b"", 204), ""),
        (Reply({"id": 1}, 201), {"id": 1}),
        (Reply(gzip.compress(b'{"a":1}'), headers={"content-encoding": "gzip"}), {"a": 1}),
    ],
)
async def test_d58_a_2xx_is_json_else_text(reply: Reply, value: Any) -> None:
    async with http_backend(one_after_the_other(reply)) as backend:
        result = await asked([tool()], call(), url=backend.url)
    assert (result.call_id, result.name, result.result) == ("call-get", "shop::get", value)


async def test_d58_an_error_status_is_told_with_the_beginning_of_its_body() -> None:
    reply = Reply(b"no such order" + b"." * 300, 404, {"content-type": "text/plain"})
    async with http_backend(one_after_the_other(reply)) as backend:
        result = await asked([tool()], call(), url=backend.url)
    assert (result.error_type, result.error) == (ErrorType.execution, "HTTP 404: no such order" + "." * 187)


async def test_d58_a_server_that_is_not_there_is_a_network_error_that_names_it() -> None:
    async with http_backend() as backend:
        url = backend.url
    result = await asked([tool()], call(), url=url)
    assert result.error_type is ErrorType.network
    assert f"127.0.0.1:{backend.port}" in str(result.error)


async def test_d58_an_unknown_tool_is_an_error_result() -> None:
    result = await asked([tool()], call("gte"), url="http://127.0.0.1:1")
    assert (result.error_type, result.error) == (
        ErrorType.unknown_tool,
        "Unknown tool 'shop::gte'; known tools: shop::get",
    )


async def test_d58_a_missing_path_argument_is_an_error_result() -> None:
    result = await asked([tool(path="/orders/{id}")], call(), url="http://127.0.0.1:1")
    assert result.error == "Missing required path parameter: 'id'"


async def test_sec_s11_a_secret_that_the_server_says_back_is_masked() -> None:
    async def echoing(request: Received) -> Reply:
        said = {"headers": dict(request.headers), "query": request.target}
        return Reply(said, 500 if request.path == "/fail" else 200)

    async with http_backend(echoing) as backend:
        settings: dict[str, Any] = {
            "url": backend.url,
            "basic_auth": "user:the-password",
            "headers": {"X-Token": "token-number-2"},
        }
        tools = [tool("get"), tool("fail", path="/fail")]
        async with opened(engine_of(tools, **settings)) as engine:
            results = await engine.execute("s", [call("get"), call("fail")])
            told = str(results) + str(await engine.get_session_state("s"))
    secrets = ["the-password", base64.b64encode(b"user:the-password").decode(), "token-number-2"]
    assert [secret for secret in secrets if secret in told] == []
    assert results[0].result["headers"]["Authorization"] == "***"


# Asking again (rule D59)


@pytest.mark.parametrize(
    ("method", "requests"), [("GET", 3), ("PUT", 3), ("DELETE", 3), ("HEAD", 3), ("POST", 1), ("PATCH", 1)]
)
async def test_d59_only_idempotent_methods_are_asked_again(method: str, requests: int) -> None:
    pauses = Pauses()
    answer = one_after_the_other(Reply({}, 500), None, Reply({"ok": True}))
    async with http_backend(answer) as backend:
        settings = {"url": backend.url, "defaults": {"max_retries": 3}}
        result = await asked([tool(method=method)], call(), pause=pauses, **settings)
        assert len(backend.received) == requests
    assert result.is_error is (requests == 1)
    assert len(pauses.seconds) == requests - 1


@pytest.mark.parametrize("status", [400, 401, 404, 409, 422, 501])
async def test_d59_what_will_not_pass_is_not_asked_again(status: int) -> None:
    async with http_backend(one_after_the_other(Reply({}, status))) as backend:
        result = await asked([tool()], call(), url=backend.url, defaults={"max_retries": 3})
    assert str(result.error).startswith(f"HTTP {status}: ")


async def test_f24_retry_after_is_kept_to() -> None:
    pauses = Pauses()
    date = {"retry-after": "Thu, 01 Jan 1970 00:00:09 GMT", "date": "Thu, 01 Jan 1970 00:00:04 GMT"}
    answer = one_after_the_other(Reply({}, 429, {"retry-after": "7"}), Reply({}, 503, date), Reply({"ok": True}))
    async with http_backend(answer) as backend:
        result = await asked([tool()], call(), pause=pauses, url=backend.url, defaults={"max_retries": 3})
    assert (result.result, pauses.seconds) == ({"ok": True}, [7, 5])


async def test_f24_a_wait_beyond_the_deadline_is_not_begun() -> None:
    pauses = Pauses()
    async with http_backend(one_after_the_other(Reply({}, 429, {"retry-after": "3600"}))) as backend:
        result = await asked([tool()], call(), pause=pauses, url=backend.url, defaults={"max_retries": 3})
    assert (result.error, pauses.seconds) == ("HTTP 429: {}", [])


async def test_d59_a_call_with_an_idempotency_key_is_asked_again_with_the_same_key() -> None:
    answer = one_after_the_other(Reply({}, 503), Reply({"ok": 1}), Reply({"ok": 2}), Reply({"ok": 3}))
    async with http_backend(answer) as backend:
        posting = tool("add", "POST", param_locations={"x": "body"})
        settings: dict[str, Any] = {
            "url": backend.url,
            "idempotency_key": {"header": "X-Idem"},
            "defaults": {"max_retries": 3},
        }
        async with opened(engine_of([posting, tool()], **settings)) as engine:
            for made, number in ((call("add", x=1), 1), (call("add", x=1), 2), (call("get"), 3)):
                assert [each.result for each in await engine.execute("s", [made])] == [{"ok": number}]
        keys = [request.header("x-idem") for request in backend.received]
    assert keys[0] == keys[1] != keys[2]
    assert len(str(keys[0])) == 32
    assert keys[3] is None  # a GET needs none


async def test_d59_a_tool_that_says_it_must_not_be_asked_twice_is_not() -> None:
    posting = tool("add", "POST")
    posting.metadata["idempotent"] = False
    async with http_backend(one_after_the_other(Reply({}, 503))) as backend:
        settings = {"url": backend.url, "idempotency_key": {}, "defaults": {"max_retries": 3}}
        assert (await asked([posting], call("add"), **settings)).error == "HTTP 503: {}"
        assert len(backend.received) == 1


async def test_f3_a_call_made_again_by_a_later_attempt_has_the_same_key_and_another_call_another() -> None:
    async with http_backend() as backend:
        posting = tool("add", "POST", param_locations={"x": "body"})
        first = engine_of([posting], url=backend.url, idempotency_key={})
        async with opened(first, "job.1") as engine:
            await engine.execute("job.1", [call("add", x=1)])
            state = await engine.get_session_state("job.1")
            await engine.execute("job.1", [call("add", x=2)])
        second = engine_of([posting], url=backend.url, idempotency_key={})
        async with opened(second, "job.2", initial_state=state) as engine:
            await engine.execute("job.2", [call("add", x=2)])
            await engine.setup("fork", initial_state=state)
            await engine.execute("fork", [call("add", x=3)])
        third = engine_of([posting], url=backend.url, idempotency_key={})
        async with opened(third, "other.1") as engine:
            await engine.execute("other.1", [call("add", x=1)])
        keys = [request.header("idempotency-key") for request in backend.received]
    assert keys[1] == keys[2]
    assert len(set(keys)) == 4


# Servers that do harm (F24, S17)


async def test_f24_a_body_larger_than_its_limit_is_refused() -> None:
    async with http_backend(one_after_the_other(Reply(b"x" * 5000))) as backend:
        result = await asked([tool()], call(), url=backend.url, max_response_bytes=4096)
    assert result.error_type is ErrorType.unparseable_result
    assert "larger than 4,096 bytes" in str(result.error)


async def test_f24_a_packed_bomb_is_refused() -> None:
    bomb = Reply(gzip.compress(b" " * (10 << 20)), headers={"content-encoding": "gzip"})
    async with http_backend(one_after_the_other(bomb)) as backend:
        result = await asked([tool()], call(), url=backend.url)
    assert result.error_type is ErrorType.unparseable_result


async def test_f24_a_server_that_drips_ends_at_the_total_deadline() -> None:
    ended = asyncio.Event()

    async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
        try:
            while not reader.at_eof():
                writer.write(b"x")
                await writer.drain()
                await asyncio.wait([asyncio.ensure_future(reader.read(1))], timeout=0.01)
        except ConnectionError:
            pass
        finally:
            ended.set()
            writer.close()

    server = await asyncio.start_server(dripping, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        result = await asked([tool()], call(), url=f"http://127.0.0.1:{port}", timeout=0.2)
        assert result.error_type is ErrorType.timeout
        await asyncio.wait_for(ended.wait(), 10)


@pytest.mark.parametrize("raw", [b"not http at all\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort"])
async def test_f24_an_answer_that_is_none_is_a_network_error(raw: bytes) -> None:
    async with http_backend(one_after_the_other(raw)) as backend:
        result = await asked([tool()], call(), url=backend.url)
    assert result.error_type is ErrorType.network


# Beside each other


async def test_calls_of_one_batch_and_of_many_sessions_are_under_way_at_once() -> None:
    waiting = asyncio.Semaphore(0)
    gate = asyncio.Event()

    async def answer(_: Received) -> Reply:
        waiting.release()
        await gate.wait()
        return Reply({})

    async with http_backend(answer) as backend, opened(engine_of([tool()], url=backend.url)) as engine:
        await engine.setup("t")
        batches = [asyncio.create_task(engine.execute(each, [call(), call(), call()])) for each in ("s", "t")]
        async with asyncio.timeout(10):
            for _ in range(6):
                await waiting.acquire()
        gate.set()
        results = [result for batch in batches for result in await batch]
        assert len(results) == 6
        assert not any(result.is_error for result in results)
        await engine.teardown("t")


async def test_a_session_that_needs_no_namespace_of_the_engine_asks_nothing() -> None:
    async with http_backend() as backend:
        engine = engine_of([tool()], url=backend.url, sessions={NAMESPACE: {"setup": {"path": "/s"}}})
        async with opened(engine, namespaces={"elsewhere"}):
            (result,) = await engine.execute("s", [ToolCall("get", NAMESPACE, {})])
        assert (result.error_type, backend.received) == (ErrorType.unknown_tool, [])
