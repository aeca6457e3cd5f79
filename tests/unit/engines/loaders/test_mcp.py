"""Tools listed by a server, at submit."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response

from engines.configuration import ToolsConfiguration
from engines.errors import ConfigurationInvalid
from engines.loaders.entries import Surroundings
from engines.loaders.mcp import load
from engines.loading import load_registry, pinned
from engines.mcp.listing import MAX_PAGES
from engines.plain import JSONObject
from engines.tool import Tool
from tests.support.certificates import Certificate
from tests.support.mcp_servers import Desk, Liar, desk_host, desk_server, events, listed, served
from tests.unit.engines.mcp.building import free_port, stdio
from tests.unit.engines.test_loading import LIVE_BLOCK

AT = ("registry", 1)


async def load_from(where: JSONObject, **more: Any) -> list[Tool]:
    surroundings = Surroundings(at=AT, folder=Path(), environment={}, **more)
    return await asyncio.to_thread(load, {"type": "mcp", "namespace": "desk", **where}, surroundings)


async def lies(liar: Liar, **more: Any) -> list[Tool]:
    async with served(liar.app()) as host:
        return await load_from({"url": host.url, **more})


async def test_d40_the_documented_url_is_looked_at_over_streamable_http_and_sse() -> None:
    for kind, path in (("http", "/mcp"), ("sse", "/sse")):
        async with desk_host(kind) as host:
            tools = await load_from({"url": host.url})
            assert [tool.qualified_name for tool in tools][:2] == ["desk::add", "desk::note"]
            assert tools[0].metadata["mcp_base_url"] == f"{host.url}{path}"
            assert tools[0].metadata["mcp_transport"] == kind


async def test_d40_the_documented_block_loads(tmp_path: Path) -> None:
    (tmp_path / "weather_tools.yaml").write_text("- name: now\n")
    async with desk_host() as host:
        block = json.loads(json.dumps(LIVE_BLOCK).replace("http://localhost:8080", f"http://localhost:{host.port}"))
        configuration = ToolsConfiguration.model_validate(block)
        registry = await asyncio.to_thread(load_registry, configuration, folder=tmp_path, environment={})
    assert registry.namespaces() == ["weather_api", "hr_api"]
    assert "hr_api::add" in registry.tool_names()


async def test_d39_base_url_means_url_and_the_namespace_may_be_left_out() -> None:
    async with desk_host() as host:
        entry = {"type": "mcp", "base_url": host.url}
        tools = await asyncio.to_thread(load, entry, Surroundings(at=AT, folder=Path(), environment={}))
    assert tools[0].namespace == "default"


async def test_d42_schemas_and_hints_are_taken() -> None:
    liar = Liar(tools=[listed(outputSchema={"type": "object"}, annotations={"readOnlyHint": True, "title": "Look"})])
    (tool,) = await lies(liar)
    assert tool.output_parameters == {"type": "object"}
    assert tool.metadata["annotations"] == {"readOnlyHint": True, "title": "Look"}


async def test_d45_a_server_that_is_started_is_named_by_its_program_alone() -> None:
    tools = await load_from(stdio(environment={"TOKEN": "canary"}))
    assert tools[0].metadata["mcp_base_url"].startswith("stdio:python")
    assert "canary" not in json.dumps([tool.to_dict() for tool in tools])


async def test_listing_follows_the_cursor_to_the_last_page() -> None:
    pages = {None: (["a", "b"], "2"), "2": (["c"], "3"), "3": (["d"], None)}

    def page(message: JSONObject) -> JSONObject:
        names, following = pages[(message.get("params") or {}).get("cursor")]
        more = {} if following is None else {"nextCursor": following}
        return {"tools": [listed(name) for name in names], **more}

    assert [tool.name for tool in await lies(Liar(answers={"tools/list": page}))] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda _: {"tools": [], "nextCursor": "again"}, "goes in a circle"),
        (lambda message: {"tools": [], "nextCursor": str(message["id"])}, f"more than {MAX_PAGES} pages"),
        (lambda _: {"tools": [listed(), listed()]}, "lists the tool 'look' twice"),
        (lambda _: {"tools": [{"name": "look"}]}, "its list of tools cannot be read: "),
        (lambda _: {"tools": [listed(inputSchema={"type": "array"})]}, "cannot be read: tools.0.inputSchema.type"),
        (lambda _: {"tools": [listed("bad\x1bname")]}, "its name holds control characters"),
        (lambda _: {"error": {"code": -32603, "message": "broken\x1b"}}, "broken"),
        (lambda _: {"tools": [listed(description="x" * 10_000_000)]}, "larger than"),
        (lambda _: Response("<html>", media_type="text/html"), "Unexpected content type"),
    ],
)
async def test_f23_a_listing_that_cannot_be_used_stops_the_submission(answer: Any, told: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=told) as caught:
        await lies(Liar(answers={"tools/list": answer}))
    assert caught.value.at == (*AT, "url")


async def test_f23_a_description_over_the_bound_of_a_stream_of_events_stops_the_submission() -> None:
    def answer(message: JSONObject) -> Any:
        result = {"tools": [listed(description="x" * 10_000_000)]}
        return events({"jsonrpc": "2.0", "id": message["id"], "result": result})

    with pytest.raises(ConfigurationInvalid, match="SSE"):
        await lies(Liar(answers={"tools/list": answer}))


async def test_sec_s9_a_long_description_is_capped() -> None:
    (tool,) = await lies(Liar(tools=[listed(description="\x1b[2Jhi " + "x" * 100_000)]))
    assert len(tool.description) == 4096
    assert tool.description.startswith("[2Jhi xxx")


async def test_e22_a_server_that_cannot_be_reached_stops_the_submission_and_says_why() -> None:
    port = free_port()
    with pytest.raises(ConfigurationInvalid, match=rf"127\.0\.0\.1:{port}: no connection: .*; is the server up\?") as c:
        await load_from({"url": f"http://127.0.0.1:{port}"})
    assert c.value.at == (*AT, "url")
    assert "/sse" not in str(c.value)  # Where nobody is, no other path is tried.


async def test_e22_a_server_that_does_not_answer_is_given_up() -> None:
    async def never(_: JSONObject) -> Any:
        await asyncio.Event().wait()

    liar = Liar(answers={"initialize": never, "server/discover": never})
    with pytest.raises(ConfigurationInvalid, match=r"no answer within 0\.3 seconds"):
        await lies(liar, timeout=0.3)


@pytest.mark.parametrize("status", [401, 403, 404, 500])
async def test_e21_a_refusal_is_told_by_its_status(status: int) -> None:
    def refuse(_: JSONObject) -> Response:
        return Response("no", status_code=status)

    with pytest.raises(ConfigurationInvalid, match=f"HTTP {status}"):
        await lies(Liar(answers={"initialize": refuse, "server/discover": refuse}))


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_sec_s11_a_refusal_does_not_tell_the_query_of_the_url(path: str) -> None:
    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        await Response(status_code=401)(scope, receive, send)

    async with served(refuse) as host:
        with pytest.raises(ConfigurationInvalid, match="HTTP 401") as caught:
            await load_from({"url": f"{host.url}{path}?key=canary"})
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "at", "told"),
    [
        ({}, (), "needs the `url` or the `command`"),
        ({"url": "http://h", "command": "x"}, (), "name two servers"),
        ({"url": "http://h", "args": ["x"]}, (), "belong to a `command`"),
        ({"url": "http://h", "transport": "stdio"}, (), "needs a `command`"),
        ({"command": "x", "transport": "sse"}, (), "spoken to over stdio"),
        ({"command": "x", "bearer_token": "t"}, (), "credentials are for a `url`"),
        ({"command": "x", "environment": {"A=B": "1"}}, (), "is no name of a variable"),
        ({"url": "http://h", "bearer_token": "t", "basic_auth": "a:b"}, (), "several ways"),
        ({"url": "file:///etc/passwd"}, ("url",), "http"),
        ({"url": "http://ok@evil"}, ("url",), "user"),
        ({"url": "http://h", "urll": "x"}, ("urll",), "did you mean 'url'"),
        ({"url": "http://h", "transport": "smoke"}, ("transport",), "'http', 'sse' or 'stdio'"),
    ],
)
async def test_d39_wrong_keys_are_told_with_their_place(keys: JSONObject, at: tuple[str, ...], told: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=told) as caught:
        await load_from(keys)
    assert caught.value.at == (*AT, *at)


async def test_d39_s11_credentials_are_sent_and_nowhere_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_KEY", "canary-env")
    async with desk_host() as host:
        seen: list[dict[bytes, bytes]] = []
        inner = host.sessions._app

        async def looking(scope: Any, receive: Any, send: Any) -> None:
            seen.append(dict(scope["headers"]) | {b"query": scope["query_string"]})
            await inner(scope, receive, send)

        host.sessions._app = looking
        entry = {
            "type": "mcp",
            "namespace": "desk",
            "engine": "live",
            "url": f"{host.url}/mcp?tenant=canary-query",
            "bearer_token": "${TOKEN}",
            "headers": {"X-Key": "env:DESK_KEY"},
            "api_key": {"name": "key", "value": "canary-key", "location": "query"},
        }
        configuration = ToolsConfiguration.model_validate(
            {"registry": [entry], "engines": {"live": {"type": "mcp", "url": host.url}}}
        )
        registry = await asyncio.to_thread(
            load_registry,
            configuration,
            folder=Path(),
            environment={},
            resolve=lambda written, _at: {**written, "bearer_token": "canary-token"},
        )
        stored = json.dumps(pinned(configuration, registry)["registry"])
    assert {headers[b"authorization"] for headers in seen} == {b"Bearer canary-token"}
    assert {headers[b"x-key"] for headers in seen} == {b"canary-env"}
    assert {headers[b"query"] for headers in seen} == {b"tenant=canary-query&key=canary-key"}
    assert "canary" not in stored


async def test_d41_tls_is_verified_unless_said_otherwise(tmp_path: Path) -> None:
    authority = Certificate.of("our authority", is_authority=True)
    server = Certificate.of("localhost", issuer=authority)
    (tmp_path / "authority.pem").write_bytes(authority.certificate_pem)
    (tmp_path / "server.pem").write_bytes(server.certificate_pem)
    (tmp_path / "server.key").write_bytes(server.key_pem)
    files: dict[str, Any] = {"ssl_certfile": str(tmp_path / "server.pem"), "ssl_keyfile": str(tmp_path / "server.key")}
    async with served(desk_server(Desk()).streamable_http_app(), **files) as host:
        url = f"https://localhost:{host.port}"
        with pytest.raises(ConfigurationInvalid, match=rf"localhost:{host.port}: TLS failed: .*certificate"):
            await load_from({"url": url})
        for verify in (str(tmp_path / "authority.pem"), False):
            assert len(await load_from({"url": url, "verify": verify})) > 3
