"""Which server a tool is called on, and what the engine's keys refuse."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from engines.errors import ConfigurationInvalid
from engines.kind_settings import EngineParts
from engines.mcp.engine import McpToolEngine
from engines.plain import JSONObject
from engines.registry import ToolRegistry
from engines.tool import ErrorType, Tool
from engines.toolset import Toolset
from tests.support.mcp_servers import desk_host
from tests.unit.engines.mcp.building import STATEFUL, block, called, running
from tests.unit.engines.stage import no_speak


def built(settings: JSONObject, **metadata: Any) -> McpToolEngine:
    toolsets = (Toolset("desk", "live", (Tool("add", "desk", metadata=metadata),)),)
    parts = EngineParts(
        "live",
        {"type": "mcp", **settings},
        toolsets,
        ToolRegistry(toolsets),
        no_speak,
        lambda _name, _at: pytest.fail("nothing routes here"),
    )
    return McpToolEngine.from_parts(parts)


@pytest.mark.parametrize(
    ("settings", "metadata", "told"),
    [
        ({"bearer_token": "t"}, {}, "credentials need the `url` of the server"),
        ({}, {"mcp_base_url": "stdio:npx"}, "say how by `command` and `args`"),
        ({}, {"mcp_base_url": "ftp://h/mcp"}, "must be an http:// or https:// URL"),
        ({"url": "http://h", "sesion": "shared"}, {}, "did you mean 'session'"),
        ({"url": "http://h", "session": "mine"}, {}, "'per_conversation' or 'shared'"),
        ({"url": "http://h", "max_in_flight": 0}, {}, "greater than or equal to 1"),
    ],
)
def test_d39_what_an_engine_cannot_be_is_told_with_its_place(
    settings: JSONObject, metadata: Mapping[str, str], told: str
) -> None:
    with pytest.raises(ConfigurationInvalid, match=told) as caught:
        built(settings, **metadata)
    assert caught.value.at[:2] == ("engines", "live")


async def test_sec_s7_a_server_that_only_a_tool_names_may_not_be_a_private_one() -> None:
    async with desk_host() as host:
        for url in (host.url, f"http://localhost:{host.port}", "http://2130706433:1", "http://[::ffff:127.0.0.1]:1"):
            engine = built({}, mcp_base_url=f"{url}/mcp", mcp_transport="http")
            await engine.setup("s")
            refused = await called(engine, "add")
            await engine.close()
            assert refused.is_error
            assert "allow_addresses" in str(refused.error)
        allowed = built({"allow_addresses": ["127.0.0.1"]}, mcp_base_url=f"{host.url}/mcp", mcp_transport="http")
        await allowed.setup("s")
        assert "allow_addresses" not in str((await called(allowed, "add")).error)
        await allowed.close()
    assert [path for _, path in host.sessions.requests].count("/mcp") > 0


async def test_the_engines_own_url_wins_over_the_one_the_tools_were_listed_at() -> None:
    async with desk_host() as listed, desk_host() as used:
        async with running(block({"url": listed.url}, engine={"url": used.url})) as engine:
            before = len(listed.sessions.requests)
            await engine.setup("s")
            assert (await called(engine, "add", a=1, b=1)).result == {"total": 2}
        assert len(listed.sessions.requests) == before
        assert used.sessions.requests


async def test_sec_s8_each_server_is_shown_its_own_credentials_and_no_others() -> None:
    async with desk_host() as one, desk_host() as two:
        written = {
            "registry": [
                {"type": "mcp", "namespace": "desk", "engine": "a", "url": one.url, "bearer_token": "for-one"},
                {"type": "mcp", "namespace": "other", "engine": "b", "url": two.url},
            ],
            "engines": {
                "a": {"type": "mcp", "url": one.url, "bearer_token": "for-one", "headers": {"X-Tenant": "one"}},
                "b": {"type": "mcp", "url": two.url},
            },
            "namespaces": {"desk": STATEFUL, "other": STATEFUL},
        }
        async with running(written) as engine:
            from engines.tool import ToolCall

            await engine.setup("s")
            calls = [ToolCall("whoami", "desk", {}), ToolCall("whoami", "other", {})]
            first, second = await engine.execute("s", calls)
            await engine.teardown("s")
    assert (first.result["authorization"], first.result["x-tenant"]) == ("Bearer for-one", "one")
    assert not {"authorization", "x-tenant"} & second.result.keys()


async def test_sec_s7_a_redirect_to_another_server_is_not_followed() -> None:
    from starlette.responses import RedirectResponse

    from tests.support.mcp_servers import Liar, listed, served

    async with desk_host() as other:
        liar = Liar(tools=[listed()])
        async with served(liar.app()) as host, running(block({"url": host.url})) as engine:
            await engine.setup("s")
            liar.answers["tools/call"] = lambda _: RedirectResponse(f"{other.url}/mcp", status_code=307)
            failed = await called(engine, "look")
    assert failed.error_type is ErrorType.execution
    assert f"it leads to {other.url}/mcp, and redirects are not followed" in str(failed.error)
    assert other.sessions.requests == []


def test_what_a_conversations_own_session_says_depends_on_it() -> None:
    for settings, expected in (({"session": "per_conversation"}, True), ({"session": "shared"}, False), ({}, False)):
        engine = built({"url": "http://h", **settings})
        toolset = engine.toolsets["desk"]
        assert engine._depends_on_session(toolset.tools[0], toolset) is expected


async def test_an_engine_that_was_never_asked_connects_to_nothing() -> None:
    async with desk_host() as host:
        written = block({"url": host.url}, namespace=STATEFUL)
        async with running(written) as engine:
            before = len(host.sessions.requests)
            assert engine.leaves_behind({"desk"})
            await asyncio.sleep(0)
        assert len(host.sessions.requests) == before
