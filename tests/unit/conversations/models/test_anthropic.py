"""The thin client of Anthropic's API: what it sends, what it makes of answers and streams, every failure typed."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anthropic
import orjson
import pytest

from conversations.errors import (
    AuthenticationFailed,
    ContextOverflow,
    MalformedReply,
    ModelError,
    ModelRefusedRequest,
    ModelUnavailable,
    RateLimited,
)
from conversations.messages import assistant, system, tool_call, tool_message, user
from conversations.models.anthropic import AnthropicModel
from conversations.models.model import ModelReply, ModelRequest
from conversations.models.offline_anthropic import message_events
from conversations.models.offline_server import OfflineServer
from conversations.models.settings import ModelSettings, OfflineSettings
from tests.unit.conversations.models.conftest import ScriptedServer, http

Connect = Callable[..., Awaitable[AnthropicModel]]
SECRET = "canary-key-77ab12"
TOOLS = [{"type": "function", "function": {"name": "f", "description": "F.", "parameters": {"type": "object"}}}]
ASKED = [{"type": "text", "text": "Let me see."}, {"type": "tool_use", "id": "a", "name": "f", "input": {"x": "é" * 9}}]


def message(content: Any = None, stop_reason: Any = "end_turn", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 3}
    given = [{"type": "text", "text": "Hello."}] if content is None else content
    return {
        "id": "msg", "type": "message", "role": "assistant", "model": "served", "content": given,
        "stop_reason": stop_reason, "stop_sequence": None, "usage": usage,
    } | more  # fmt: skip


def stream(events: list[dict[str, Any]]) -> bytes:
    return b"".join(b"event: %b\ndata: %b\n\n" % (each["type"].encode(), orjson.dumps(each)) for each in events)


def streamed(body: bytes) -> bytes:
    return http(200, body, "Content-Type: text/event-stream")


@pytest.fixture
async def connect(server: ScriptedServer) -> AsyncIterator[Connect]:
    models: list[AnthropicModel] = []
    server.answers = [http(200, message())]

    async def connected(**settings: Any) -> AnthropicModel:
        base_url = server.base_url.removesuffix("/v1")
        given = {"provider": "anthropic", "model": "claude", "base_url": base_url, "api_key": SECRET}
        model = AnthropicModel(ModelSettings.model_validate(given | settings), make_call_id=lambda: "made")
        await model.open()
        models.append(model)
        return model

    yield connected
    for model in models:
        await model.close()


async def ask(model: AnthropicModel, **more: Any) -> ModelReply:
    return await model.ask(ModelRequest([user("Hi")], **more))


async def failure(model: AnthropicModel) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(model)
    return caught.value


async def test_a_reply_is_read_and_cached_tokens_count(server: ScriptedServer, connect: Connect) -> None:
    reply = await ask(await connect(), session_id="c1")

    assert reply.message == {"role": "assistant", "content": "Hello."}
    assert (reply.finish_reason, reply.model, reply.input_tokens, reply.output_tokens) == ("stop", "served", 17, 3)
    assert server.heads[0].startswith("POST /v1/messages ")
    assert server.header("authorization") == f"Bearer {SECRET}"
    assert server.header("anthropic-version")
    assert server.header("x-session-id") == "c1"


async def test_the_body_holds_what_was_asked(server: ScriptedServer, connect: Connect) -> None:
    model = await connect(temperature=0.5, top_p=0.9, max_tokens=64, stop="END", extra={"metadata": {"user_id": "u"}})
    history = [system("Help."), user("Hi"), assistant(None, [tool_call("a", "f", "{}")]), tool_message("a", "Error: x")]

    await model.ask(ModelRequest(history, tools=TOOLS, tool_choice="required", failed_call_ids={"a"}))

    mark = {"type": "ephemeral"}
    body = json.loads(server.bodies[0])
    assert body == {
        "model": "claude", "max_tokens": 64, "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["END"],
        "metadata": {"user_id": "u"}, "tool_choice": {"type": "any"},
        "tools": [{"name": "f", "description": "F.", "input_schema": {"type": "object"}, "cache_control": mark}],
        "system": [{"type": "text", "text": "Help.", "cache_control": mark}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "Error: x", "is_error": True}
                | {"cache_control": mark}
            ]},
        ],
    }  # fmt: skip


async def test_no_marks_without_prompt_cache(server: ScriptedServer, connect: Connect) -> None:
    model = await connect(prompt_cache=False)
    await model.ask(ModelRequest([system("Help."), user("Hi")], tools=TOOLS))
    assert b"cache_control" not in server.bodies[0]


async def test_static_parts_come_first_and_are_the_same_bytes(server: ScriptedServer, connect: Connect) -> None:
    model = await connect()
    for text in ("one", "two"):
        await model.ask(ModelRequest([system("Help."), user(text)], tools=TOOLS))
    head, tail = (body.split(b'"messages"')[0] for body in server.bodies)
    assert head == tail


STOPS = {
    "end_turn": "stop", "stop_sequence": "stop", "tool_use": "stop", "max_tokens": "length",
    "model_context_window_exceeded": "length", "refusal": "refusal", "pause_turn": "pause_turn",
}  # fmt: skip


@pytest.mark.parametrize(("said", "meant"), STOPS.items())
async def test_every_stop_reason_has_a_meaning(server: ScriptedServer, connect: Connect, said: str, meant: str) -> None:
    server.answers = [http(200, message(stop_reason=said))]
    assert (await ask(await connect())).finish_reason == meant


async def test_a13_a_refusal_without_words_is_a_refusal(server: ScriptedServer, connect: Connect) -> None:
    server.answers = [http(200, message([], "refusal"))]
    reply = await ask(await connect())
    assert reply.message["refusal"]
    assert reply.finish_reason == "refusal"


async def test_a_call_cut_off_at_the_limit_is_no_reply_to_run(server: ScriptedServer, connect: Connect) -> None:
    events = message_events(message(ASKED, "max_tokens"))
    del events[-4]  # the second half of the arguments
    server.answers = [streamed(stream(events))]
    reply = await ask(await connect(stream=True))
    assert reply.finish_reason == "length"
    assert "malformed_arguments" in reply.message["tool_calls"][0]["function"]["arguments"]


ERRORS: dict[int, tuple[str, type[ModelError]]] = {
    400: ("invalid_request_error", ModelRefusedRequest),
    401: ("authentication_error", AuthenticationFailed),
    403: ("permission_error", AuthenticationFailed),
    404: ("not_found_error", ModelRefusedRequest),
    413: ("request_too_large", ContextOverflow),
    429: ("rate_limit_error", RateLimited),
    500: ("api_error", ModelUnavailable),
    529: ("overloaded_error", ModelUnavailable),
}


def error(kind: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": f"said with {SECRET}"}}


@pytest.mark.parametrize(("status", "expected"), ERRORS.items())
async def test_f18_statuses_are_typed(
    server: ScriptedServer, connect: Connect, status: int, expected: tuple[str, type[ModelError]]
) -> None:
    server.answers = [http(status, error(expected[0]), "Retry-After: 7")]
    caught = await failure(await connect())
    assert type(caught) is expected[1]
    assert SECRET not in f"{caught} {caught.body}"
    if status in {429, 529}:
        assert caught.retry_after_seconds == 7


@pytest.mark.parametrize(("status", "expected"), ERRORS.items())
async def test_f19_errors_inside_a_stream_are_the_same_errors(
    server: ScriptedServer, connect: Connect, status: int, expected: tuple[str, type[ModelError]]
) -> None:
    events = [*message_events(message(ASKED))[:5], error(expected[0])]
    server.answers = [streamed(stream(events))]
    assert type(await failure(await connect(stream=True))) is expected[1]


async def test_f19_a_stream_cut_anywhere_is_never_a_reply(server: ScriptedServer, connect: Connect) -> None:
    whole = stream(message_events(message(ASKED, "tool_use")))
    end = whole.index(b'data: {"type":"message_stop"}') + len(b'data: {"type":"message_stop"}\n\n')
    model = await connect(stream=True)
    for length in range(0, end - 1, 7):
        server.answers = [streamed(whole[:length])]
        caught = await failure(model)
        assert isinstance(caught, ModelUnavailable | MalformedReply), length
        assert caught.retryable
    server.answers = [streamed(whole)]
    reply = await ask(model)
    assert reply.message == assistant("Let me see.", [tool_call("a", "f", orjson.dumps({"x": "é" * 9}).decode())])
    assert (reply.finish_reason, reply.input_tokens, reply.output_tokens) == ("tool_calls", 17, 3)


BAD_BODIES: dict[str, Any] = {
    "no json": b"{", "empty": b"", "null": b"null", "a list": [], "a number": 7, "nothing": {},
    "no content": {"type": "message"},
    "content of text": message("hi"), "content of numbers": message([1]), "empty content": message([]),
    "unknown stop": message(stop_reason="weather"), "stop that is a number": message(stop_reason=3),
    "a call without a name": message([{"type": "tool_use", "id": "a", "input": {}}]),
    "a block without a type": message([{"text": "hi"}]),
    "deep": b"[" * 5000,
    "an error of no kind": {"type": "error"},
    "an error of text": {"type": "error", "error": "boom"},
}  # fmt: skip


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES)
async def test_f20_bad_bodies_are_typed_errors(server: ScriptedServer, connect: Connect, body: Any) -> None:
    server.answers = [http(200, body)]
    caught = await failure(await connect())
    assert caught.retryable
    assert isinstance(caught, MalformedReply | ModelUnavailable)


BAD_STREAMS: dict[str, list[Any]] = {
    "no events": [],
    "no json": [b"data: {\n\n"],
    "a list": [b"data: []\n\n"],
    "an end without a beginning": [b'data: {"type":"message_stop"}\n\n'],
    "a block that grows before it begins": [
        b'data: {"type":"message_start","message":{}}\n\n',
        b'data: {"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"x"}}\n\n',
    ],
    "numbers": [b"data: 7\n\n"],
}


@pytest.mark.parametrize("events", BAD_STREAMS.values(), ids=BAD_STREAMS)
async def test_f20_bad_streams_are_typed_errors(server: ScriptedServer, connect: Connect, events: list[bytes]) -> None:
    server.answers = [streamed(b"".join(events))]
    caught = await failure(await connect(stream=True))
    assert isinstance(caught, MalformedReply | ModelUnavailable)


async def test_f21_a_reply_without_end_is_cut(server: ScriptedServer, connect: Connect) -> None:
    server.answers = [streamed(b": nothing\n" * 1000)]
    assert "larger than max_reply_bytes" in str(await failure(await connect(stream=True, max_reply_bytes=1024)))


async def test_the_official_sdk_reads_what_our_server_says() -> None:
    """The offline server is refereed by the SDK, whole and as a stream; and our own client is held against both."""
    async with OfflineServer(OfflineSettings(turns=2)) as server:
        client = anthropic.AsyncAnthropic(api_key="k", base_url=server.base_url.removesuffix("/v1"), max_retries=0)
        tools: Any = [{"name": "f", "description": "F.", "input_schema": {"type": "object", "properties": {}}}]
        asked: Any = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "Go."}], "tools": tools}
        whole = await client.messages.create(**asked)
        async with client.messages.stream(**asked) as events:
            final = await events.get_final_message()
        await client.close()
    assert whole.stop_reason == final.stop_reason == "tool_use"
    assert [block.model_dump() for block in whole.content] == [
        {key: value for key, value in block.model_dump().items() if key in whole.content[0].model_dump()}
        for block in final.content
    ]


UNANSWERED = {"type": "tool_use", "id": "a", "name": "f", "input": {}}


@pytest.mark.parametrize(
    "turns",
    [
        [{"role": "assistant", "content": "x"}],
        [{"role": "user", "content": ""}],
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}]}],
        [{"role": "user", "content": "x"}, {"role": "assistant", "content": [UNANSWERED]}],
    ],
)  # fmt: skip
async def test_decision_1_our_server_refuses_what_the_provider_refuses(turns: list[Any]) -> None:
    async with OfflineServer() as server:
        client = anthropic.AsyncAnthropic(api_key="k", base_url=server.base_url.removesuffix("/v1"), max_retries=0)
        with pytest.raises(anthropic.BadRequestError):
            await client.messages.create(model="m", max_tokens=9, messages=turns)
        await client.close()


async def test_what_a_caller_says_of_sampling_stands_over_the_settings(
    server: ScriptedServer, connect: Connect
) -> None:
    model = await connect(temperature=0.5)
    await ask(model, parameters={"temperature": 0.9, "max_tokens": 5, "stop": "END"})
    await ask(model)
    first, second = [json.loads(body) for body in server.bodies]
    assert (first["temperature"], first["max_tokens"], first["stop_sequences"]) == (0.9, 5, ["END"])
    assert (second["temperature"], second["max_tokens"], "stop_sequences" in second) == (0.5, 8192, False)


async def test_a21_a_mark_of_a_tools_own_ends_what_may_be_kept_in_place_of_ours(
    server: ScriptedServer, connect: Connect
) -> None:
    own = {"f": {"cache_control": {"type": "ephemeral", "ttl": "1h"}, "defer_loading": True}}
    model = await connect()
    await ask(model, tools=[*TOOLS, _named("g")], encoded_extras=orjson.dumps(own))
    await ask(model, tools=[*TOOLS, _named("g")])
    marked, ours = [json.loads(body)["tools"] for body in server.bodies]
    assert marked[0] == ours[0] | own["f"]
    assert "cache_control" not in marked[1]
    assert ours[1]["cache_control"] == {"type": "ephemeral"}


def _named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
