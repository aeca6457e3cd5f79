"""The offline server: the OpenAI SDK is its referee, faults come in the shares asked for, every request is logged."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from conversations.errors import ModelError
from conversations.messages import assistant, system, tool_call, tool_message, user
from conversations.models.model import ModelRequest
from conversations.models.offline_server import Faults, OfflineServer, serve
from conversations.models.openai_compatible import OpenAICompatibleModel
from conversations.models.settings import ModelSettings, OfflineSettings

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS: Any = [{"type": "function", "function": {"name": "weather__get", "description": "d", "parameters": CITY}}]


@pytest.fixture
async def server() -> AsyncIterator[OfflineServer]:
    async with OfflineServer(OfflineSettings(turns=3)) as listening:
        yield listening


@pytest.fixture
async def sdk(server: OfflineServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=0, timeout=30) as client:
        yield client


async def model_of(server: OfflineServer, **settings: Any) -> OpenAICompatibleModel:
    given = {"provider": "openai", "model": "m", "base_url": server.base_url} | settings
    model = OpenAICompatibleModel(ModelSettings.model_validate(given))
    await model.open()
    return model


async def test_the_sdk_makes_a_whole_tool_conversation(sdk: openai.AsyncOpenAI) -> None:
    messages: list[Any] = [system("You help."), user("Weather in Oslo?")]
    for _ in range(2):
        reply = await sdk.chat.completions.create(model="m", messages=messages, tools=TOOLS)
        (choice,) = reply.choices
        assert choice.finish_reason == "tool_calls"
        assert choice.message.tool_calls
        (call,) = choice.message.tool_calls
        assert call.type == "function"
        assert set(json.loads(call.function.arguments)) == {"city"}
        messages += [choice.message.model_dump(exclude_none=True), tool_message(call.id, '{"city": "Oslo"}')]

    reply = await sdk.chat.completions.create(model="m", messages=messages, tools=TOOLS)

    assert reply.choices[0].finish_reason == "stop"
    assert "Oslo" in str(reply.choices[0].message.content)
    assert reply.model == "m"
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 0


async def test_the_sdk_parses_structured_output_and_candidates(sdk: openai.AsyncOpenAI) -> None:
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "r", "schema": CITY, "strict": True}}
    messages: Any = [user("go")]

    reply = await sdk.chat.completions.create(model="m", messages=messages, response_format=wanted, n=3, logprobs=True)

    assert len(reply.choices) == 3
    for choice in reply.choices:
        assert set(json.loads(str(choice.message.content))) == {"city"}
        assert choice.logprobs is not None
        assert choice.logprobs.content


async def test_the_sdk_lists_the_model(sdk: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in sdk.models.list()] == ["offline"]


async def test_the_sdk_and_our_client_read_the_same_reply(server: OfflineServer, sdk: openai.AsyncOpenAI) -> None:
    messages: Any = [user("Weather in Oslo?")]
    model = await model_of(server)

    ours = await model.ask(ModelRequest(messages, tools=TOOLS, seed=4))
    theirs = await sdk.chat.completions.create(model="m", messages=messages, tools=TOOLS, seed=4)

    assert theirs.choices[0].message.model_dump(exclude_none=True) == {
        key: value for key, value in ours.message.items() if value is not None
    }
    await model.close()


@pytest.mark.parametrize(
    ("status", "error"),
    [(429, openai.RateLimitError), (500, openai.InternalServerError), (401, openai.AuthenticationError)],
)
async def test_the_sdk_knows_our_errors(status: int, error: type[openai.APIStatusError]) -> None:
    faults = Faults(rate_429=float(status == 429), rate_500=float(status == 500), retry_after_seconds=2.5)
    async with OfflineServer(faults=faults, api_key="right") as server:
        key = "wrong" if status == 401 else "right"
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key=key, max_retries=0) as client:
            with pytest.raises(error) as caught:
                await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
    assert caught.value.response.headers.get("retry-after") == ("2.5" if status == 429 else None)


async def test_f18_faults_come_in_their_shares_and_are_seeded() -> None:
    async def outcomes() -> list[str]:
        faults = Faults(0.2, 0.2, 0.2, 0.2, retry_after_seconds=0.5)
        async with OfflineServer(OfflineSettings(turns=1, seed=9), faults=faults) as server:
            model = await model_of(server)
            found = []
            for _ in range(200):
                try:
                    await model.ask(ModelRequest([user("Hi")]))
                    found.append("ok")
                except ModelError as error:
                    found.append(error.type + (f" {error.retry_after_seconds}" if error.retry_after_seconds else ""))
            await model.close()
            return found

    first = await outcomes()

    counts = Counter(first)
    assert set(counts) == {"ok", "rate_limited 0.5", "model_unavailable", "malformed_reply"}
    assert 15 <= counts["ok"] <= 70
    assert 50 <= counts["model_unavailable"] <= 120  # 500s and replies that broke off
    assert first == await outcomes()


async def test_f1_every_request_is_logged_with_its_conversation_and_turn(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    history = [user("Hi"), assistant(None, [tool_call("a", "weather__get", "{}")]), tool_message("a", "1")]
    async with OfflineServer(OfflineSettings(turns=3), request_log=log, faults=Faults(rate_500=1.0)) as server:
        model = await model_of(server)
        for messages in (history[:1], history, history):
            with pytest.raises(ModelError):
                await model.ask(ModelRequest(messages, tools=TOOLS, session_id="run.000001"))
        await model.close()

    lines = [json.loads(line) for line in log.read_text().splitlines()]

    assert [line["turn"] for line in lines] == [1, 2, 2]
    assert {line["session_id"] for line in lines} == {"run.000001"}
    assert [line["number"] for line in lines] == [1, 2, 3]
    assert lines[0]["digest"] != lines[1]["digest"] == lines[2]["digest"]
    assert lines[0] | {"digest": ""} == {
        "number": 1, "session_id": "run.000001", "turn": 1, "digest": "", "model": "m", "tools": 1, "fault": "500"
    }  # fmt: skip


async def test_many_wait_at_the_same_time() -> None:
    async with OfflineServer(OfflineSettings(turns=1, latency_ms=50)) as server:
        model = await model_of(server)
        await asyncio.gather(*(model.ask(ModelRequest([user("Hi")])) for _ in range(100)))
        await model.close()

    assert server.statistics.requests == 100
    assert server.statistics.most_in_flight > 50
    assert server.statistics.in_flight == 0


async def test_healthz_and_unknown_paths(server: OfflineServer) -> None:
    async with httpx2.AsyncClient(base_url=f"http://{server.host}:{server.port}") as client:
        assert (await client.get("/healthz")).json() == {"status": "ok", "requests": 0, "in_flight": 0}
        assert (await client.get("/v1/models?limit=3")).status_code == 200
        assert (await client.get("/v1/nothing")).status_code == 404
        assert (await client.get("/v1/chat/completions")).status_code == 404


CALLED = assistant(None, [tool_call("a", "f", "{}"), tool_call("b", "f", "{}")])
REFUSED: dict[str, Any] = {
    "no JSON": b"{",
    "a list": [],
    "no messages": {"model": "m"},
    "empty messages": {"messages": []},
    "messages of text": {"messages": ["hi"]},
    "tools without names": {"messages": [user("x")], "tools": [{"type": "function", "function": {}}]},
    "tools that are no list": {"messages": [user("x")], "tools": {"a": 1}},
    "too many candidates": {"messages": [user("x")], "n": 1000},
    "a call without its result": {"messages": [user("x"), CALLED, tool_message("a", "1")]},
    "a call without its result before a user": {"messages": [CALLED, tool_message("a", "1"), user("x")]},
    "a result without its call": {"messages": [user("x"), tool_message("a", "1")]},
    "a result given twice": {"messages": [CALLED, *[tool_message("a", "1")] * 2, tool_message("b", "1")]},
    "a call without a name": {"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "function": {}}]}]},
    "calls that are numbers": {"messages": [{"role": "assistant", "tool_calls": [1]}]},
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED.keys())
async def test_decision_1_what_a_provider_refuses_is_refused_here_too(server: OfflineServer, body: Any) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with httpx2.AsyncClient() as client:
        answer = await client.post(f"{server.base_url}/chat/completions", content=content)

    assert answer.status_code == 400
    assert answer.json()["error"]["message"]
    assert server.statistics.requests == 0


async def test_serve_says_its_port_and_ends_when_cancelled() -> None:
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(serve(turns=1, ready=port.set_result))
    async with httpx2.AsyncClient() as client:
        assert (await client.get(f"http://127.0.0.1:{await port}/healthz")).status_code == 200
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
