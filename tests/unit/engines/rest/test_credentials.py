"""Credentials stay with the server they are for (rule S8)."""

from typing import Any

import pytest

from engines.multi import MultiToolEngine
from engines.rest.engine import RestToolEngine
from engines.rest.settings import RestSettings
from engines.tool import Tool, ToolCall
from engines.toolset import Toolset
from tests.support.http_backend import HttpBackend, Received, Reply, http_backend

TOKENS = {"a": "token-of-a-0001", "b": "token-of-b-0002"}


def everything(backend: HttpBackend) -> str:
    return repr(backend.received)


def rest(namespace: str, url: str, base_url: str, **more: Any) -> RestToolEngine:
    metadata = {"rest_method": "GET", "rest_path": "/orders", "rest_base_url": base_url}
    tool = Tool("get", namespace, metadata=metadata)
    settings = {"type": "rest", "url": url, "bearer_token": TOKENS[namespace], **more}
    return RestToolEngine((Toolset(namespace, None, (tool,)),), RestSettings.model_validate(settings))


async def test_sec_s8_each_server_sees_its_own_token_alone() -> None:
    async with http_backend() as a, http_backend() as b:
        # Each tool's own base URL names the other server; the engine's url, which its token is for, holds.
        engines = {"to_a": rest("a", a.url, b.url), "to_b": rest("b", b.url, a.url)}
        engine = MultiToolEngine(engines, {"a": "to_a", "b": "to_b"})
        await engine.open()
        await engine.setup("s")
        results = await engine.execute("s", [ToolCall("get", "a", {}), ToolCall("get", "b", {})])
        assert not any(result.is_error for result in results)
        await engine.teardown("s")
        await engine.close()
        assert (a.last.header("authorization"), b.last.header("authorization")) == (
            f"Bearer {TOKENS['a']}",
            f"Bearer {TOKENS['b']}",
        )
        assert TOKENS["b"] not in everything(a)
        assert TOKENS["a"] not in everything(b)


@pytest.mark.parametrize("status", [301, 307])
async def test_sec_s8_a_redirect_takes_no_token_along(status: int) -> None:
    async with http_backend() as b:

        async def away(_: Received) -> Reply:
            return Reply({}, status, {"location": f"{b.url}/steal"})

        async with http_backend(away) as a:
            engine = rest("a", a.url, b.url)
            await engine.setup("s")
            (result,) = await engine.execute("s", [ToolCall("get", "a", {})])
            await engine.close()
        assert result.is_error
        assert b.received == []


async def test_sec_s8_a_token_in_a_result_is_not_reused() -> None:
    async def giving(_: Received) -> Reply:
        body = {"access_token": "given-token-1", "url": "http://169.254.169.254/"}
        return Reply(body, 200, {"set-cookie": "sid=given-cookie-1; Path=/", "authorization": "Bearer given-token-1"})

    async with http_backend(giving) as a:
        engine = rest("a", a.url, a.url)
        await engine.setup("s")
        for _ in range(2):
            (result,) = await engine.execute("s", [ToolCall("get", "a", {})])
            assert result.result["access_token"] == "given-token-1"
        await engine.close()
        assert "given-" not in everything(a)


async def test_sec_s8_a_key_in_the_query_is_in_no_message() -> None:
    key = {"name": "key", "value": "query-key-0001", "location": "query"}
    async with http_backend() as a:
        url = a.url
    engine = rest("a", url, url, bearer_token=None, api_key=key)
    await engine.setup("s")
    (result,) = await engine.execute("s", [ToolCall("get", "a", {})])
    await engine.close()
    assert result.is_error
    assert "query-key-0001" not in str(result)
