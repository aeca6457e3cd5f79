"""The offline model: deterministic, exact in the number of turns it is told, honest about schemas and choices."""

import json
from typing import Any

import jsonschema_rs
import pytest

from conversations.messages import Message, assistant, system, tool_message, user
from conversations.models.model import ModelReply, ModelRequest
from conversations.models.offline import OfflineModel, compose_reply
from conversations.models.settings import ModelSettings, OfflineSettings

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def tool(name: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters or CITY}}


WEATHER, STOCK = (
    tool("weather_api__get_weather"),
    tool("market__get_stock_price", {"type": "object", "properties": {"symbol": {"type": "string"}}}),
)
RESULT = {"city": "Oslo", "temperature": 4, "condition": "light rain"}


def ask(messages: list[Message], turns: int | None = None, seed: int = 0, **request: Any) -> ModelReply:
    return compose_reply(ModelRequest(messages, **request), OfflineSettings(turns=turns, seed=seed), model="offline")


def conversation(
    turns: int | None, seed: int = 0, question: str = "How is the weather in Oslo?", tools: Any = (WEATHER,)
) -> list[Message]:
    messages = [system("You help."), user(question)]
    for _ in range(50):
        reply = ask(messages, turns, tools=list(tools), seed=seed)
        messages.append(reply.message)
        calls = reply.message.get("tool_calls", [])
        if not calls:
            return messages
        messages += [tool_message(call["id"], json.dumps(RESULT)) for call in calls]
    raise AssertionError("it never ends")


def calls_of(messages: list[Message]) -> list[int]:
    return [len(message.get("tool_calls", [])) for message in messages if message["role"] == "assistant"]


@pytest.mark.parametrize("turns", [1, 2, 5, 9])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_turns_are_exact_one_call_in_each_but_the_last(turns: int, seed: int) -> None:
    assert calls_of(conversation(turns, seed)) == [1] * (turns - 1) + [0]


def test_workload_w_is_four_calls_and_a_final_text() -> None:
    messages = conversation(5)

    assert calls_of(messages) == [1, 1, 1, 1, 0]
    assert len({call["id"] for message in messages for call in message.get("tool_calls", [])}) == 4
    assert "Oslo" in messages[-1]["content"]


def test_turns_count_from_the_last_user_message() -> None:
    messages = [*conversation(3), user("And in Lima?")]

    assert "tool_calls" in ask(messages, 3, tools=[WEATHER]).message


def test_left_free_it_plans_one_to_three_rounds_and_sometimes_two_calls() -> None:
    counts = [
        calls_of(conversation(None, seed, "Compare the weather in Oslo, Lima, Seoul and Tokyo")) for seed in range(60)
    ]

    assert {len(count) for count in counts} <= {2, 3, 4}
    assert all(count[-1] == 0 and all(1 <= calls <= 2 for calls in count[:-1]) for count in counts)
    assert any(2 in count for count in counts)
    assert len({tuple(count) for count in counts}) > 3


def test_left_free_it_asks_nothing_twice_and_nothing_the_user_did_not_name() -> None:
    for seed in range(40):
        asked = [
            call["function"]["arguments"]
            for message in conversation(None, seed, "How is the weather in Oslo?")
            for call in message.get("tool_calls", [])
        ]
        assert asked == ['{"city":"Oslo"}']


def test_the_same_request_gets_the_same_reply_and_another_seed_another() -> None:
    messages = [user("Tell me a story")]

    assert ask(messages, seed=1) == ask(messages, seed=1)
    assert len({ask(messages, seed=seed).message["content"] for seed in range(20)}) > 5
    assert ask([user("hi")], tools=[WEATHER], seed=1) != ask([user("hi")], tools=[WEATHER], seed=2)


def test_the_requests_own_seed_counts() -> None:
    def reply(seed: int) -> ModelReply:
        return compose_reply(ModelRequest([user("Any city")], tools=[WEATHER], seed=seed), OfflineSettings(), model="m")

    assert reply(1) == reply(1)
    assert len({str(reply(seed).message) for seed in range(10)}) == 10


def test_the_tool_that_the_question_mentions_is_chosen_first() -> None:
    for seed in range(10):
        reply = ask([user("What is the stock price of AAPL?")], seed=seed, tools=[WEATHER, STOCK])
        assert reply.message["tool_calls"][0]["function"] == {
            "name": "market__get_stock_price",
            "arguments": '{"symbol":"AAPL"}',
        }


@pytest.mark.parametrize(
    "schema", [{}, None, {"type": "object"}, {"properties": {"n": {"type": "integer"}}, "required": ["n"]}]
)
def test_arguments_are_always_a_valid_object(schema: Any) -> None:
    function = {"name": "f"} if schema is None else {"name": "f", "parameters": schema}
    for seed in range(10):
        reply = ask([user("go")], 2, seed, tools=[{"type": "function", "function": function}])
        arguments = json.loads(reply.message["tool_calls"][0]["function"]["arguments"])
        assert isinstance(arguments, dict)
        assert jsonschema_rs.is_valid(schema or {}, arguments)


def test_tool_choice_is_honoured() -> None:
    def called(choice: Any, turns: int | None = 1) -> list[str]:
        reply = ask([user("Weather?")], turns, tools=[WEATHER, STOCK], tool_choice=choice)
        return [call["function"]["name"] for call in reply.message.get("tool_calls", [])]

    assert called("none") == called("auto") == []
    assert len(called("required")) == len(called("required", None)) == 1
    assert called({"type": "function", "function": {"name": "market__get_stock_price"}}, None) == [
        "market__get_stock_price"
    ]
    assert called({"type": "function", "function": {"name": "market__get_stock_price"}}) == ["market__get_stock_price"]


def test_finish_reason_and_tokens_tell_the_truth() -> None:
    calling, final = ask([user("Weather?")], 2, tools=[WEATHER]), ask([user("x" * 400)], 1)

    assert (calling.finish_reason, final.finish_reason) == ("tool_calls", "stop")
    assert final.input_tokens == 100
    assert final.output_tokens == len(final.message["content"]) // 4


def test_d21_a_json_schema_is_answered_by_a_valid_document_that_repeats_the_call() -> None:
    schema = {"type": "object", "required": ["city", "temperature"], "additionalProperties": False, "properties": {
        "city": {"type": "string"}, "temperature": {"type": "number", "minimum": -50, "maximum": 60}}}  # fmt: skip
    question = (
        'Tool specification:\n{"name": "w::get"}\n\nTool call:\n{"name": "w::get", "arguments": {"city": "Quito"}}'
    )

    reply = ask(
        [user(question)], response_format={"type": "json_schema", "json_schema": {"name": "r", "schema": schema}}
    )

    document = json.loads(reply.message["content"])
    assert jsonschema_rs.is_valid(schema, document)
    assert document["city"] == "Quito"


def test_d21_a_json_object_repeats_the_call_and_adds_what_the_tool_promises() -> None:
    question = (
        'Tool specification:\n{}\n\nTool call:\n{"name": "market::get_stock_price", "arguments": {"symbol": "AAPL"}}'
    )

    document = json.loads(ask([user(question)], response_format={"type": "json_object"}).message["content"])

    assert document["symbol"] == "AAPL"
    assert "stock_price" in document


@pytest.mark.parametrize(
    "question", ["", "Tool call:", "Tool call: {", "Tool call:\n[1]", 'Tool call:\n{"arguments": 7}', "}{"]
)
def test_a_question_that_holds_no_call_is_answered_all_the_same(question: str) -> None:
    for response_format in ({"type": "json_object"}, {"type": "json_schema"}, None):
        content = ask([user(question)], response_format=response_format).message["content"]
        assert content
        if response_format == {"type": "json_object"}:
            assert isinstance(json.loads(content), dict)


def test_d26_candidates_differ_and_have_logprobs() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "r", "schema": schema}}

    reply = ask([user("go")], candidates=5, logprobs=True, response_format=wanted)

    assert len(reply.alternatives) == 5
    assert all(each.logprob is not None and each.logprob < 0 for each in reply.alternatives)
    assert len({each.message["content"] for each in reply.alternatives}) > 1
    assert reply.message == reply.alternatives[0].message


def test_histories_of_any_shape_are_answered() -> None:
    strange: list[Message] = [
        {"role": "developer", "content": "x"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        tool_message("unknown", "{}"), assistant(None), {"role": "user"}, {},
    ]  # fmt: skip
    for length in range(len(strange) + 1):
        assert ask(strange[:length], tools=[WEATHER]).message["role"] == "assistant"


async def test_the_model_names_itself_and_waits_as_told() -> None:
    model = OfflineModel(
        ModelSettings(provider="offline", model="small", offline=OfflineSettings(turns=1, latency_ms=1))
    )
    await model.open()
    reply = await model.ask(ModelRequest([user("Hi")]))
    await model.close()

    assert (model.model_id, reply.model) == ("small", "small")
