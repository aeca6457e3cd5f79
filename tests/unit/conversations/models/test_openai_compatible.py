"""The thin client: the bytes it sends, what it makes of answers, and that every failure has a type."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import orjson
import pytest

from conversations.errors import (
    AuthenticationFailed,
    ContextOverflow,
    MalformedReply,
    ModelError,
    ModelRefusedRequest,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
)
from conversations.messages import assistant, tool_call, tool_message, user
from conversations.models.model import ModelRequest
from conversations.models.openai_compatible import OpenAICompatibleModel
from conversations.models.settings import ModelSettings
from tests.unit.conversations.models.conftest import GOOD, ScriptedServer, http
from tests.unit.conversations.models.test_replies import BAD_BODIES

Connect = Callable[..., Awaitable[OpenAICompatibleModel]]
SECRET = "canary-key-8f2a61"
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


async def failure(model: OpenAICompatibleModel, request: ModelRequest) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.ask(request)
    return caught.value


async def test_a_reply_is_read(server: ScriptedServer, connect: Connect, question: ModelRequest) -> None:
    reply = await (await connect()).ask(question)

    assert reply.message == {"role": "assistant", "content": "Hello."}
    assert (reply.finish_reason, reply.model, reply.input_tokens, reply.output_tokens) == ("stop", "served", 12, 3)
    assert (reply.attempts, reply.alternatives) == (1, ())


async def test_the_body_holds_what_was_asked(server: ScriptedServer, connect: Connect) -> None:
    model = await connect(temperature=0.5, top_p=0.9, max_tokens=64, stop=["END"], extra={"guided": {"a": 1}})
    schema = {"type": "json_object"}
    request = ModelRequest(
        [user("Hé")], tools=TOOLS, tool_choice="auto", response_format=schema, candidates=3, logprobs=True, seed=5
    )

    await model.ask(request)

    assert json.loads(server.bodies[0]) == {
        "model": "m", "temperature": 0.5, "top_p": 0.9, "max_tokens": 64, "stop": ["END"], "guided": {"a": 1},
        "tools": TOOLS, "tool_choice": "auto", "response_format": schema, "n": 3, "logprobs": True, "seed": 5,
        "messages": [{"role": "user", "content": "Hé"}],
    }  # fmt: skip


async def test_encoded_fragments_are_sent_as_they_are(server: ScriptedServer, connect: Connect) -> None:
    request = ModelRequest(
        [user("Hi")],
        encoded_messages=[b'{"role" : "user","content":"Hi"}'],
        tools=TOOLS,
        encoded_tools=orjson.dumps(TOOLS),
    )

    await (await connect()).ask(request)

    assert b'"messages":[{"role" : "user","content":"Hi"}]' in server.bodies[0]
    assert json.loads(server.bodies[0])["tools"] == TOOLS


async def test_no_tools_no_tool_choice(server: ScriptedServer, connect: Connect) -> None:
    await (await connect()).ask(ModelRequest([user("Hi")], tools=[], tool_choice="auto"))

    assert json.loads(server.bodies[0]) == {"model": "m", "messages": [user("Hi")]}


async def test_the_static_part_comes_first_and_is_the_same_bytes_each_turn(
    server: ScriptedServer, connect: Connect
) -> None:
    model = await connect(temperature=0.1)
    history = [user("Hi")]
    await model.ask(ModelRequest(history, tools=TOOLS))
    await model.ask(ModelRequest([*history, assistant("Hello."), user("And?")], tools=TOOLS))

    first, second = server.bodies
    assert second.startswith(first[: -len(b"]}")])
    assert first.index(b'"tools"') < first.index(b'"messages"')


async def test_the_session_header_is_stable_over_a_conversation(server: ScriptedServer, connect: Connect) -> None:
    model = await connect()
    for _ in range(2):
        await model.ask(ModelRequest([user("Hi")], session_id="run-1.000042"))
    await model.ask(ModelRequest([user("Hi")], session_id="line\nbreak ü"))

    assert [server.header("X-Session-ID", n) for n in range(3)] == [
        "run-1.000042",
        "run-1.000042",
        "line\\nbreak \\xfc",
    ]


async def test_the_key_and_further_headers_are_sent(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    await (await connect(api_key=SECRET, headers={"X-Team": "blue"})).ask(question)

    assert server.header("Authorization") == f"Bearer {SECRET}"
    assert server.header("X-Team") == "blue"
    assert server.header("Content-Type") == "application/json"
    assert server.heads[0].startswith("POST /v1/chat/completions HTTP/1.1")


async def test_a_header_of_the_settings_wins_over_the_key(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    await (await connect(api_key=SECRET, headers={"Authorization": "Basic abc"})).ask(question)

    assert server.header("Authorization") == "Basic abc"


async def test_a_query_in_the_base_url_stays_behind_the_path(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    await (await connect(base_url=f"{server.base_url}/?api-version=2")).ask(question)

    assert server.heads[0].startswith("POST /v1/chat/completions?api-version=2 ")


def test_openai_itself_takes_max_completion_tokens() -> None:
    model = OpenAICompatibleModel(ModelSettings(provider="openai", model="gpt-5", max_tokens=9))

    assert json.loads(model.body_of(ModelRequest([user("Hi")]))).keys() == {
        "model",
        "max_completion_tokens",
        "messages",
    }


async def test_connections_are_kept(server: ScriptedServer, connect: Connect, question: ModelRequest) -> None:
    first, second = await connect(), await connect(model="other")
    for model in (first, second, first, second):
        await model.ask(question)

    assert server.connections == 1


async def test_asking_a_model_that_is_not_open_is_a_bug(server: ScriptedServer, question: ModelRequest) -> None:
    model = OpenAICompatibleModel(ModelSettings(provider="openai", model="m", base_url=server.base_url))

    with pytest.raises(RuntimeError, match="not open"):
        await model.ask(question)


async def test_f20_call_ids_that_the_history_knows_are_replaced(server: ScriptedServer, connect: Connect) -> None:
    call = tool_call("call_0", "f", "{}")
    server.answers = [http(200, {"choices": [{"message": assistant(None, [call]), "finish_reason": "tool_calls"}]})]
    history = [user("Hi"), assistant(None, [call]), tool_message("call_0", "1")]

    reply = await (await connect()).ask(ModelRequest(history))

    (made,) = reply.message["tool_calls"]
    assert made["id"] not in {"call_0", ""}
    assert reply.finish_reason == "tool_calls"


async def test_d26_candidates_come_with_their_summed_logprobs(server: ScriptedServer, connect: Connect) -> None:
    def choice(text: str, *logprobs: float) -> dict[str, Any]:
        tokens = [{"token": "t", "logprob": logprob} for logprob in logprobs]
        return {"message": assistant(text), "finish_reason": "stop", "logprobs": {"content": tokens}}

    server.answers = [http(200, {"choices": [choice("a", -1, -2.5), {"message": 7}, choice("b", -0.5)]})]

    reply = await (await connect()).ask(ModelRequest([user("Hi")], candidates=3, logprobs=True))

    assert [(each.message["content"], each.logprob) for each in reply.alternatives] == [("a", -3.5), ("b", -0.5)]


STATUSES = [
    (400, {"error": {"message": "bad schema"}}, ModelRefusedRequest, False),
    (400, {"error": {"message": "x", "code": "context_length_exceeded"}}, ContextOverflow, False),
    (400, {"message": "This model's maximum context length is 4096 tokens"}, ContextOverflow, False),
    (401, {"error": "no key"}, AuthenticationFailed, False),
    (403, b"forbidden", AuthenticationFailed, False),
    (404, {"error": {"message": "no such model"}}, ModelRefusedRequest, False),
    (408, b"", ModelTimeout, True),
    (409, b"", ModelUnavailable, True),
    (413, b"", ContextOverflow, False),
    (418, b"", ModelRefusedRequest, False),
    (422, {"detail": [{"loc": ["body"], "msg": "prompt is too long"}]}, ContextOverflow, False),
    (429, {"error": {"message": "slow down"}}, RateLimited, True),
    (429, {"error": {"message": "x", "code": "insufficient_quota"}}, ModelRefusedRequest, False),
    (500, b"<html>", ModelUnavailable, True),
    (502, b"\xff\xfe", ModelUnavailable, True),
    (503, b"", ModelUnavailable, True),
    (504, b"", ModelTimeout, True),
    (529, {"error": {"message": "overloaded"}}, ModelUnavailable, True),
    (599, b"", ModelUnavailable, True),
    (302, b"", ModelRefusedRequest, False),
    (204, b"", ModelRefusedRequest, False),
    (200, {"error": {"message": "inside", "code": 429}}, RateLimited, True),
    (200, {"error": {"message": "inside", "code": 502}}, ModelUnavailable, True),
    (200, {"error": {"message": "inside"}}, MalformedReply, True),
]  # fmt: skip


@pytest.mark.parametrize("case", STATUSES, ids=lambda case: f"{case[0]}-{case[2].__name__}")
async def test_f18_each_status_has_its_type(
    server: ScriptedServer, connect: Connect, question: ModelRequest, case: tuple[int, Any, type[ModelError], bool]
) -> None:
    status, body, kind, retryable = case
    server.answers = (
        [http(status, body, "Location: http://elsewhere/")] if status != 204 else [b"HTTP/1.1 204 No\r\n\r\n"]
    )

    error = await failure(await connect(), question)

    assert type(error) is kind
    assert error.retryable is retryable
    assert error.status == (body["error"]["code"] if status == 200 and kind is not MalformedReply else status)
    assert "model 'm' at http://127.0.0.1:" in error.message


async def test_sec_s7_redirects_are_not_followed(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    server.answers = [http(307, b"", f"Location: {server.base_url}/again")]

    assert "redirects are not followed" in (await failure(await connect(api_key=SECRET), question)).message
    assert len(server.heads) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (["Retry-After: 7"], 7.0),
        (["retry-after-ms: 1500", "Retry-After: 9"], 1.5),
        (["Retry-After: soon"], None),
        ([], None),
        (["Date: Sat, 21 Nov 2026 10:00:00 GMT", "Retry-After: Sat, 21 Nov 2026 10:00:30 GMT"], 30.0),
    ],
)
async def test_f18_a_429_says_how_long_to_wait(
    server: ScriptedServer, connect: Connect, question: ModelRequest, headers: list[str], seconds: float | None
) -> None:
    server.answers = [http(429, {"error": {"message": "slow down"}}, *headers)]

    assert (await failure(await connect(), question)).retry_after_seconds == seconds


async def test_f18_a_date_without_the_servers_date_is_held_against_our_clock(
    server: ScriptedServer, question: ModelRequest
) -> None:
    now = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
    due = format_datetime(now + timedelta(seconds=42), usegmt=True)
    server.answers = [http(503, b"", f"Retry-After: {due}")]
    settings = ModelSettings(provider="openai", model="m", base_url=server.base_url)
    model = OpenAICompatibleModel(settings, clock=now.timestamp)
    await model.open()

    error = await failure(model, question)

    assert error.retry_after_seconds == 42.0
    await model.close()


async def test_f19_a_reply_that_breaks_off_at_any_byte_is_an_error_never_a_part(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    whole = http(200, GOOD)
    model = await connect()

    def cut_at(length: int) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
        async def send(writer: asyncio.StreamWriter) -> None:
            writer.write(whole[:length])
            await writer.drain()

        return send

    for length in range(len(whole)):
        server.answers = [cut_at(length)]
        error = await failure(model, question)
        assert type(error) in {ModelUnavailable, MalformedReply}, (length, error)
        assert error.retryable


async def test_f19_a_chunked_reply_that_breaks_off_is_an_error(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(head + b"%x\r\n" % len(orjson.dumps(GOOD)) + orjson.dumps(GOOD) + b"\r\n")  # no last chunk
        await writer.drain()

    server.answers = [send]

    assert type(await failure(await connect(), question)) is ModelUnavailable


async def test_a_chunked_reply_is_read(server: ScriptedServer, connect: Connect, question: ModelRequest) -> None:
    body = orjson.dumps(GOOD)
    chunks = b"".join(b"1\r\n" + body[place : place + 1] + b"\r\n" for place in range(len(body)))
    server.answers = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"]

    assert (await (await connect()).ask(question)).message["content"] == "Hello."


async def test_f19_nobody_listening_is_unavailable(connect: Connect, question: ModelRequest) -> None:
    error = await failure(await connect(base_url="http://127.0.0.1:1/v1"), question)

    assert type(error) is ModelUnavailable
    assert error.retryable
    assert "Connection refused" in error.message


async def test_f19_no_reply_in_time_is_a_timeout(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    never = asyncio.Event()

    async def hang(writer: asyncio.StreamWriter) -> None:
        await never.wait()

    server.answers = [hang]

    error = await failure(await connect(timeout_seconds=0.1), question)

    assert type(error) is ModelTimeout
    assert error.retryable
    assert "0.1 s" in error.message


async def test_f19_a_reply_that_drips_ends_at_the_total_deadline(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await asyncio.sleep(0.01)

    server.answers = [drip]

    assert type(await failure(await connect(timeout_seconds=0.2), question)) is ModelTimeout


async def test_f21_a_reply_announced_too_large_is_not_read(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    sent = 0

    async def flood(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n")
        while not writer.is_closing() and sent < 104857600:
            writer.write(b" " * 65536)
            sent += 65536
            await writer.drain()

    server.answers = [flood]

    error = await failure(await connect(max_reply_bytes=4096), question)

    assert type(error) is MalformedReply
    assert "max_reply_bytes = 4096" in error.message
    assert sent < 32 << 20


async def test_f21_an_endless_reply_is_cut(server: ScriptedServer, connect: Connect, question: ModelRequest) -> None:
    sent = 0

    async def flood(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
            sent += 65536
            await writer.drain()

    server.answers = [flood]

    error = await failure(await connect(max_reply_bytes=1 << 20), question)

    assert type(error) is MalformedReply
    assert sent < 64 << 20


async def test_f21_an_endless_error_body_is_cut(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    async def flood(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            await writer.drain()

    server.answers = [flood]

    error = await failure(await connect(), question)

    assert type(error) is ModelUnavailable
    assert len(error.body) <= 2000


async def test_sec_s17_packed_replies_are_not_unpacked(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    server.answers = [http(200, b"\x1f\x8b packed", "Content-Encoding: gzip")]

    assert type(await failure(await connect(), question)) is MalformedReply
    assert server.header("Accept-Encoding") is None


async def test_sec_s11_secrets_stay_out_of_errors_and_reprs(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    model = await connect(api_key=SECRET, headers={"X-Token": "other-canary-55"})
    echo = {"error": {"message": f"bad key {SECRET}, token other-canary-55, sk-abcdef123456, Bearer zzzzzzzzzz"}}
    for status in (400, 401, 429, 500):
        server.answers = [http(status, echo)]
        error = await failure(model, question)
        for shown in (str(error), repr(error), error.body, error.message):
            assert SECRET not in shown
            assert "other-canary-55" not in shown
            assert "abcdef123456" not in shown
            assert "zzzzzzzzzz" not in shown
    server.answers = [http(200, {"choices": [{"message": {"content": 7, "key": SECRET}}]})]
    assert SECRET not in (await failure(model, question)).body
    assert SECRET not in repr(model)
    assert SECRET not in repr(model._settings)


async def test_f20_the_first_two_kilobytes_of_a_malformed_body_are_kept(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    server.answers = [http(200, b'{"choices": "' + b"y" * 5000 + b'"}')]

    error = await failure(await connect(), question)

    assert error.body.startswith('{"choices": "yyy')
    assert len(error.body) == 2000


async def test_a_cancelled_call_lets_go_at_once(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    asked, never = asyncio.Event(), asyncio.Event()

    async def hang(writer: asyncio.StreamWriter) -> None:
        asked.set()
        await never.wait()

    server.answers = [hang]
    task = asyncio.ensure_future((await connect()).ask(question))
    await asked.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_model_closed_under_a_call_gives_a_typed_error(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    asked, never = asyncio.Event(), asyncio.Event()

    async def hang(writer: asyncio.StreamWriter) -> None:
        asked.set()
        await never.wait()

    server.answers = [hang]
    model = await connect()
    task = asyncio.ensure_future(failure(model, question))
    await asked.wait()
    await model.close()
    await model.close()

    assert type(await task) is ModelUnavailable


async def test_f20_every_bad_body_of_the_table_is_a_typed_error_over_http_too(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    model = await connect()
    for name, body in BAD_BODIES.items():
        server.answers = [http(200, body)]
        error = await failure(model, question)
        assert type(error) is MalformedReply, name
        assert error.status == 200
        assert error.message.startswith("model 'm' at http://127.0.0.1:")
        assert len(error.body) <= 2000


async def test_what_a_caller_says_of_sampling_stands_over_the_settings(
    server: ScriptedServer, connect: Connect
) -> None:
    model = await connect(temperature=0.5, max_tokens=64, extra={"kept": 1})
    said = {"temperature": None, "top_p": 0.9, "stop": ["END"]}
    await model.ask(ModelRequest([user("Hi")], parameters=said))
    await model.ask(ModelRequest([user("Hi")]))

    first, second = [json.loads(body) for body in server.bodies]
    own = {"model": "m", "max_tokens": 64, "kept": 1, "messages": [user("Hi")]}
    assert first == own | {"top_p": 0.9, "stop": ["END"]}
    assert second == own | {"temperature": 0.5}
