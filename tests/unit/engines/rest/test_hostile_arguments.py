"""Arguments are data (rules S4, S5, S6): each reaches the backend as it is, in its own place, or is refused."""

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote

import pytest

from engines.rest.engine import RestToolEngine
from engines.tool import ErrorType
from tests.support.http_backend import HttpBackend, http_backend
from tests.unit.engines.rest.hostile_arguments import OTHERS, TEXTS
from tests.unit.engines.rest.rest_tools import call, engine_of, tool

SENT = {"host", "accept", "user-agent", "accept-encoding", "authorization", "content-length", "content-type"}
TOOLS = [
    tool("in_query", path="/q", param_locations={"x": "query", "last": "query"}),
    tool("in_path", path="/p/{x}/{last}", param_locations={"x": "path", "last": "path"}),
    tool("in_header", path="/h", param_locations={"x": "header", "last": "query"}),
    tool("in_cookie", path="/c", param_locations={"x": "cookie", "last": "cookie"}),
    tool("in_body", "POST", "/b", param_locations={"x": "body", "last": "body"}),
    tool("undeclared", path="/u"),
]


@pytest.fixture
async def api() -> AsyncIterator[tuple[RestToolEngine, HttpBackend]]:
    async with http_backend() as backend:
        engine = engine_of(TOOLS, url=f"{backend.url}/base", bearer_token="token-of-ours")
        await engine.open()
        await engine.setup("s")
        yield engine, backend
        await engine.teardown("s")
        await engine.close()


async def sent(api: tuple[RestToolEngine, HttpBackend], name: str, value: Any) -> bool:
    """Make the call; say whether anything was sent, having checked all that the argument must not touch."""
    engine, backend = api
    before = len(backend.received)
    (result,) = await engine.execute("s", [call(name, x=value, last="z")])
    if len(backend.received) == before:
        assert result.error_type in {ErrorType.validation, ErrorType.permission}, result
        return False
    assert not result.is_error, result
    assert len(backend.received) == before + 1
    request = backend.last
    assert {each.lower() for each, _ in request.headers} - SENT <= {{"in_header": "x", "in_cookie": "cookie"}.get(name)}
    assert request.header("host") == f"127.0.0.1:{backend.port}"
    assert request.header("authorization") == "Bearer token-of-ours"
    assert request.raw_path.startswith("/base/")
    return True


async def test_sec_s4_texts_are_literal_in_a_query(api: tuple[RestToolEngine, HttpBackend]) -> None:
    for name, path in (("in_query", "/base/q"), ("undeclared", "/base/u")):
        for text in TEXTS:
            assert await sent(api, name, text)
            assert api[1].last.raw_path == path
            assert api[1].last.query == [("x", text), ("last", "z")]


async def test_sec_s5_texts_are_one_segment_of_a_path_or_refused(api: tuple[RestToolEngine, HttpBackend]) -> None:
    refused = []
    for text in TEXTS:
        if await sent(api, "in_path", text):
            segments = api[1].last.target.split("/")
            assert [segments[:3], unquote(segments[3]), segments[4:]] == [["", "base", "p"], text, ["z"]]
        else:
            refused.append(text)
    assert refused == [".", ".."]


async def test_sec_s6_texts_are_literal_in_a_header_or_refused(api: tuple[RestToolEngine, HttpBackend]) -> None:
    for text in TEXTS:
        is_sent = await sent(api, "in_header", text)
        assert is_sent is (text.isascii() and text.isprintable() and text == text.strip())
        if is_sent:
            assert api[1].last.header("x") == text


async def test_sec_s6_texts_are_literal_in_a_cookie(api: tuple[RestToolEngine, HttpBackend]) -> None:
    for text in TEXTS:
        assert await sent(api, "in_cookie", text)
        cookies = str(api[1].last.header("cookie")).split("; ")
        assert [unquote(cookie) for cookie in cookies] == [f"x={text}", "last=z"]


async def test_sec_s4_anything_is_literal_in_a_body(api: tuple[RestToolEngine, HttpBackend]) -> None:
    for value in [*TEXTS, *OTHERS, None]:
        assert await sent(api, "in_body", value)
        assert json.loads(api[1].last.body) == {"x": value, "last": "z"}


async def test_sec_s4_other_values_stay_in_their_place_or_are_refused(api: tuple[RestToolEngine, HttpBackend]) -> None:
    for name in ("in_query", "in_path", "in_header", "in_cookie", "undeclared"):
        for value in OTHERS:
            if await sent(api, name, value):
                last = api[1].last
                assert "z" in {value for _, value in last.query} | {last.raw_path[-1:], str(last.header("cookie"))[-1:]}


async def test_sec_s4_extra_arguments_change_neither_server_nor_credentials(
    api: tuple[RestToolEngine, HttpBackend],
) -> None:
    engine, backend = api
    names = ["url", "base_url", "host", "Host", "headers", "authorization", "bearer_token", "method", "__proto__"]
    arguments = dict.fromkeys(names, "http://evil.example")
    (result,) = await engine.execute("s", [call("undeclared", **arguments)])
    assert not result.is_error
    assert dict(backend.last.query) == arguments
    assert backend.last.method == "GET"
    assert backend.last.header("authorization") == "Bearer token-of-ours"
