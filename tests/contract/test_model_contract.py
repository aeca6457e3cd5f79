"""What every model keeps to: the offline one, and it behind HTTP in each family's words, streamed and in retries."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
import pytest
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

from conversations.messages import Message, system, tool_message, user
from conversations.models.kinds import MODEL_KINDS, build_model
from conversations.models.model import Model, ModelRequest
from conversations.models.offline_server import OfflineServer
from conversations.models.settings import ModelSettings, OfflineSettings
from conversations.wire.names import WireNames
from conversations.wire.openai import parse_calls, result_message, tool_definitions
from engines.tool import Tool, ToolResult

OFFLINE = OfflineSettings(turns=5)
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = Tool(name="get_weather", namespace="weather", description="The weather of a city.", parameters=CITY)
NAMES = WireNames([WEATHER])
TOOLS = tool_definitions([WEATHER], NAMES)
MESSAGES: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])

VARIANTS: dict[str, Callable[[ModelSettings], Model]] = (
    dict(MODEL_KINDS)
    | {f"retrying {name}": build_model for name in MODEL_KINDS}
    | {f"streaming {name}": MODEL_KINDS[name] for name in ("openai", "anthropic")}
)


@pytest.fixture(params=VARIANTS)
async def model(request: pytest.FixtureRequest) -> AsyncIterator[Model]:
    kind, _, provider = request.param.rpartition(" ")
    async with OfflineServer(OFFLINE, api_key="k") as server:
        settings = {"provider": provider, "model": "m", "base_url": server.base_url, "offline": OFFLINE, "api_key": "k"}
        settings["stream"] = kind == "streaming"
        made = VARIANTS[request.param](ModelSettings.model_validate(settings))
        await made.open()
        yield made
        await made.close()


async def finished(model: Model, session_id: str = "s") -> list[Message]:
    """Make a whole conversation of workload W."""
    messages = [system("You help."), user("How is the weather in Oslo?")]
    for _ in range(9):
        reply = await model.ask(ModelRequest(messages, tools=TOOLS, session_id=session_id, seed=3))
        messages.append(reply.message)
        calls = parse_calls(reply.message, NAMES)
        if not calls:
            return messages
        for parsed in calls:
            assert parsed.call is not None
            messages.append(
                result_message(parsed.call_id, ToolResult(parsed.call_id, "weather::get_weather", {"t": 4}))
            )
    raise AssertionError("the conversation never ends")


async def test_workload_w_is_four_turns_of_one_call_and_a_final_text(model: Model) -> None:
    replies = [message for message in await finished(model) if message["role"] == "assistant"]

    assert [len(reply.get("tool_calls", [])) for reply in replies] == [1, 1, 1, 1, 0]
    assert replies[-1]["content"]


async def test_histories_are_what_the_sdk_takes_and_json(model: Model) -> None:
    messages = await finished(model)

    MESSAGES.validate_python(messages)
    assert orjson.loads(orjson.dumps(messages)) == messages
    for message in messages:
        for call in message.get("tool_calls", []):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)


async def test_the_same_request_gets_the_same_reply(model: Model) -> None:
    assert await finished(model) == await finished(model, "other")


async def test_a_reply_says_model_reason_and_tokens(model: Model) -> None:
    reply = await model.ask(ModelRequest([user("Hello there")]))

    assert (reply.model, model.model_id, reply.finish_reason, reply.attempts) == ("m", "m", "stop", 1)
    assert reply.output_tokens > 0
    assert reply.input_tokens >= 0
    assert reply.message["role"] == "assistant"
    assert reply.alternatives == ()


async def test_encoded_and_plain_requests_mean_the_same(model: Model) -> None:
    messages = [user("How is the weather in Lima?")]
    encoded = ModelRequest(
        messages, encoded_messages=[orjson.dumps(messages[0])], tools=TOOLS, encoded_tools=orjson.dumps(TOOLS), seed=1
    )

    assert await model.ask(encoded) == await model.ask(ModelRequest(messages, tools=TOOLS, seed=1))


async def test_the_request_is_left_as_it_was(model: Model) -> None:
    messages: list[Message] = [user("Hi"), {"role": "assistant", "content": "Hello."}, user("And?")]
    before = orjson.dumps([messages, TOOLS])

    await model.ask(ModelRequest(messages, tools=TOOLS))

    assert orjson.dumps([messages, TOOLS]) == before


async def test_d21_response_formats_are_honoured(model: Model) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "r", "schema": CITY}}

    document = json.loads((await model.ask(ModelRequest([user("go")], response_format=wanted))).message["content"])
    free = json.loads(
        (await model.ask(ModelRequest([user("go")], response_format={"type": "json_object"}))).message["content"]
    )

    assert isinstance(document["city"], str)
    assert isinstance(free, dict)


async def test_d26_candidates_are_alternatives_with_the_chosen_one_first(
    model: Model, request: pytest.FixtureRequest
) -> None:
    reply = await model.ask(ModelRequest([user("go")], candidates=4, logprobs=True))

    assert len(reply.alternatives) == 4
    assert reply.alternatives[0].message == reply.message
    tells_logprobs = "anthropic" not in request.node.name
    assert all(isinstance(each.logprob, float) is tells_logprobs for each in reply.alternatives)


async def test_many_calls_run_at_the_same_time(model: Model) -> None:
    requests = [ModelRequest([user(f"Question {number}")], session_id=str(number)) for number in range(50)]

    replies = await asyncio.gather(*map(model.ask, requests))

    assert all(f"Question {number}" in reply.message["content"] for number, reply in enumerate(replies))


async def test_opening_and_closing_twice_is_harmless(model: Model) -> None:
    await model.open()
    assert (await model.ask(ModelRequest([user("Hi")]))).message["content"]
    await model.close()
    await model.close()


async def test_closed_and_opened_again_it_works(model: Model) -> None:
    await model.close()
    await model.open()

    assert (await model.ask(ModelRequest([user("Hi"), {"role": "assistant", "content": "Yes?"}, user("Hm")]))).message


async def test_a_history_with_answered_calls_is_accepted(model: Model) -> None:
    messages = await finished(model)

    reply = await model.ask(ModelRequest([*messages, user("And in Lima?")], tools=TOOLS))

    (call,) = reply.message["tool_calls"]
    assert call["id"] not in {message.get("tool_call_id") for message in messages}
    assert tool_message(call["id"], "1")
