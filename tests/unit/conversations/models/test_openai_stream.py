"""Streams of chat completions: put together as if they had come whole, and never a reply before their end (F19)."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest

from conversations.errors import MalformedReply, ModelError, ModelUnavailable, RateLimited
from conversations.messages import assistant, tool_call
from conversations.models.model import ModelRequest
from conversations.models.openai_compatible import OpenAICompatibleModel
from tests.unit.conversations.models.conftest import GOOD, ScriptedServer, http

Connect = Callable[..., Awaitable[OpenAICompatibleModel]]
ARGUMENTS = '{"city":"Sankt Pölten"}'


def delta(finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": more, "finish_reason": finish}
    return {"object": "chat.completion.chunk", "model": "served", "choices": [choice]}


def piece(index: int, text: str, **opening: Any) -> dict[str, Any]:
    function = {"arguments": text} | ({"name": opening.pop("name")} if "name" in opening else {})
    return delta(tool_calls=[{"index": index, "function": function, **opening}])


CALLS = [
    delta(role="assistant", content=""), delta(content="Let me "), delta(content="see."),
    piece(0, "", id="a", name="f", type="function"), piece(0, ARGUMENTS[:9]), piece(0, ARGUMENTS[9:]),
    piece(1, "{}", id="b", name="g", type="function"),
    delta("tool_calls"),
    {"object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3}},
]  # fmt: skip
WHOLE = assistant("Let me see.", [tool_call("a", "f", ARGUMENTS), tool_call("b", "g", "{}")])


def body_of(events: list[Any], *, done: bool = True) -> bytes:
    lines = b"".join(b"data: " + orjson.dumps(event) + b"\r\n\r\n" for event in events)
    return b": keep-alive\n\n" + lines + (b"data: [DONE]\n\n" if done else b"")


def streamed(body: bytes) -> bytes:
    return http(200, body, "Content-Type: text/event-stream; charset=utf-8")


async def failure(model: OpenAICompatibleModel, question: ModelRequest) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await model.ask(question)
    return caught.value


async def test_pieces_become_the_reply(server: ScriptedServer, connect: Connect, question: ModelRequest) -> None:
    server.answers = [streamed(body_of(CALLS))]
    reply = await (await connect(stream=True)).ask(question)

    assert reply.message == WHOLE
    assert (reply.finish_reason, reply.model, reply.input_tokens, reply.output_tokens) == (
        "tool_calls",
        "served",
        12,
        3,
    )
    sent = orjson.loads(server.bodies[0])
    assert (sent["stream"], sent["stream_options"]) == (True, {"include_usage": True})


async def test_f19_a_stream_cut_anywhere_is_never_a_reply(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    whole = body_of(CALLS)
    end = whole.index(b'"finish_reason":"tool_calls"')
    model = await connect(stream=True)
    for length in range(0, end, 7):
        server.answers = [streamed(whole[:length])]
        caught = await failure(model, question)
        assert isinstance(caught, ModelUnavailable), length
        assert caught.retryable


async def test_a_stream_may_end_without_its_last_word(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    """Some servers close the connection after the finish reason and never say `[DONE]`."""
    server.answers = [streamed(body_of(CALLS, done=False))]
    assert (await (await connect(stream=True)).ask(question)).message == WHOLE


async def test_a_server_without_streams_answers_at_once(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    server.answers = [http(200, GOOD, "Content-Type: application/json")]
    assert (await (await connect(stream=True)).ask(question)).message == assistant("Hello.")


async def test_an_error_inside_the_stream_is_that_error(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    server.answers = [streamed(body_of([{"error": {"message": "slow down", "code": 429}}]))]
    assert isinstance(await failure(await connect(stream=True), question), RateLimited)


async def test_several_candidates_come_interleaved(
    server: ScriptedServer, connect: Connect, question: ModelRequest
) -> None:
    events = [delta(content=text) | {} for text in ("A", "B")]
    events[1]["choices"][0]["index"] = 1
    endings = [delta("stop"), delta("stop")]
    endings[1]["choices"][0]["index"] = 1
    server.answers = [streamed(body_of([*events, *endings]))]
    reply = await (await connect(stream=True)).ask(ModelRequest(question.messages, candidates=2))
    assert [each.message["content"] for each in reply.alternatives] == ["A", "B"]


BAD = {
    "no json": b"data: {\n\n",
    "a number": b"data: 7\n\n",
    "a call that is text": body_of([delta(tool_calls=["x"])]),
    "a call without a name": body_of([delta(tool_calls=[{"index": 0, "id": "a"}]), delta("tool_calls")]),
    "an unknown end": body_of([delta(content="x"), delta("weather")]),
    "too many calls": body_of([delta(tool_calls=[{"index": number} for number in range(2000)]), delta("stop")]),
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
async def test_f20_bad_streams_are_malformed(
    server: ScriptedServer, connect: Connect, question: ModelRequest, body: bytes
) -> None:
    server.answers = [streamed(body)]
    assert isinstance(await failure(await connect(stream=True), question), MalformedReply)
