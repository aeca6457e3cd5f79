"""OpenAI's shapes: what is sent, what comes back, and that nothing a model writes breaks the history."""

import itertools
import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic import TypeAdapter

from conversations.errors import MalformedReply
from conversations.messages import assistant, system, tool_call, user
from conversations.wire.names import WireNames
from conversations.wire.openai import (
    MAX_CALLS_IN_REPLY,
    call_ids_in,
    normalise_assistant,
    parse_calls,
    result_message,
    tool_choice_of,
    tool_definition,
    tool_definitions,
)
from engines.tool import ErrorType, Tool, ToolResult

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = Tool(name="get", namespace="weather", description="The weather of a city", parameters=CITY)
NAMES = WireNames([WEATHER])
MESSAGES: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
TOOLS: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionToolParam])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def counted() -> Any:
    numbers = itertools.count()
    return lambda: f"made_{next(numbers)}"


def said(arguments: Any, name: str = "weather__get", call_id: Any = "call_1") -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    ]}  # fmt: skip


def parsed(arguments: Any, name: str = "weather__get") -> Any:
    (call,) = parse_calls(normalise_assistant(said(arguments, name), counted()), NAMES)
    return call


def test_e15_a_tool_definition() -> None:
    assert tool_definition(WEATHER, "weather__get") == {
        "type": "function",
        "function": {"name": "weather__get", "description": "The weather of a city", "parameters": CITY},
    }


def test_a21_strict_is_passed_through_and_other_metadata_is_not() -> None:
    tool = Tool(
        name="a", parameters=CITY, metadata={"strict": True, "mcp_base_url": "http://inside", "cache_control": {}}
    )

    assert tool_definition(tool, "a")["function"] == {"name": "a", "parameters": CITY, "strict": True}


def test_a_tool_without_parameters_still_has_an_object_schema() -> None:
    definition = tool_definition(Tool(name="now", parameters={}), "now")

    assert definition["function"]["parameters"] == {"type": "object", "properties": {}}


def test_d69_overloads_are_offered_as_one_definition() -> None:
    by_id = {
        "type": "object",
        "properties": {"city": {"type": "integer"}, "day": {"type": "string"}},
        "required": ["city"],
    }
    other = Tool(name="get", namespace="weather", description="By number", parameters=by_id)
    alone = Tool(name="other", namespace="weather")

    merged, second = tool_definitions([WEATHER, alone, other], WireNames([WEATHER, alone, other]))

    assert merged["function"]["name"] == "weather__get"
    assert merged["function"]["description"] == "The weather of a city\nor: By number"
    assert merged["function"]["parameters"] == {
        "type": "object",
        "properties": {"city": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "day": {"type": "string"}},
        "required": ["city"],
    }
    assert second["function"]["name"] == "weather__other"


def test_u5_a_tool_as_tool_choice_is_the_forced_function() -> None:
    assert tool_choice_of("weather::get", NAMES) == {"type": "function", "function": {"name": "weather__get"}}
    assert tool_choice_of("required", NAMES) == "required"
    assert tool_choice_of(None, NAMES) is None


def test_e14_a_call_goes_to_the_engine_and_its_result_comes_back() -> None:
    call = parsed('{"city": "Oslo"}')

    assert (call.call.qualified_name, call.call.arguments, call.call.call_id) == (
        "weather::get",
        {"city": "Oslo"},
        "call_1",
    )
    message = result_message("call_1", ToolResult("call_1", "weather::get", {"temperature": 4}))
    assert message == {"role": "tool", "tool_call_id": "call_1", "content": '{"temperature":4}'}


@pytest.mark.parametrize(
    "arguments", ['{"city": ', "city=Oslo", "{'city': 'Oslo'}", '{"city": NaN}', '{"a":1}}', "\ud800"]
)
def test_e15_arguments_that_are_no_json_are_a_problem_for_the_model_not_a_crash(arguments: str) -> None:
    call = parsed(arguments)

    assert call.call is None
    assert not call.is_unknown
    assert "not valid JSON" in call.problem


def test_e15_broken_arguments_stay_readable_in_a_history_that_servers_can_parse() -> None:
    message = normalise_assistant(said('{"city": "Os'), counted())

    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"malformed_arguments": '{"city": "Os'}
    assert '{"city": "Os' in str(parse_calls(message, NAMES)[0].problem)
    assert normalise_assistant(message, counted()) == message


@pytest.mark.parametrize("arguments", [None, "", "  ", "null", "[1]", "3", "true", '"text"', "{}"])
def test_u21_nothing_and_json_that_is_no_object_are_no_arguments(arguments: Any) -> None:
    assert parsed(arguments).call.arguments == {}


@pytest.mark.parametrize(
    "arguments", ['{"city":"Oslo"}', {"city": "Oslo"}, '"{\\"city\\":\\"Oslo\\"}"', ' {"city": "Oslo"}\n']
)
def test_u21_objects_and_json_texts_of_objects_are_arguments(arguments: Any) -> None:
    assert parsed(arguments).call.arguments == {"city": "Oslo"}


def test_the_models_own_spelling_of_arguments_is_kept() -> None:
    message = normalise_assistant(said('{"city" :  "Oslo"}'), counted())

    assert message["tool_calls"][0]["function"]["arguments"] == '{"city" :  "Oslo"}'


@pytest.mark.parametrize("levels", [65, 500, 5000])
def test_f21_arguments_nested_too_deeply_are_a_problem(levels: int) -> None:
    call = parsed('{"a":' * levels + "1" + "}" * levels)

    assert call.call is None
    assert call.problem


def test_f21_many_brackets_side_by_side_are_no_depth() -> None:
    assert parsed(json.dumps({"a": [[n] for n in range(500)]})).problem is None


def test_u19_a_missing_empty_or_foreign_id_is_replaced() -> None:
    for call_id in (None, "", 7, ["x"], "x" * 1000, "a\nb"):
        message = normalise_assistant(said("{}", call_id=call_id), counted())
        assert message["tool_calls"][0]["id"] == "made_0"


def test_decision_1_duplicate_ids_in_a_message_and_over_turns_become_unique() -> None:
    raw = said("{}")
    raw["tool_calls"] = raw["tool_calls"] * 3
    history = [assistant(None, [tool_call("made_0", "x", "{}"), tool_call("call_1", "x", "{}")])]

    message = normalise_assistant(raw, counted(), taken_ids=call_ids_in(history))

    assert [call["id"] for call in message["tool_calls"]] == ["made_1", "made_2", "made_3"]


def test_decision_1_the_same_id_twice_in_one_message_is_two_calls() -> None:
    raw = said("{}")
    raw["tool_calls"] = raw["tool_calls"] * 2

    message = normalise_assistant(raw, counted())

    assert [call["id"] for call in message["tool_calls"]] == ["call_1", "made_0"]


def test_decision_6_a_tool_that_is_not_offered_is_unknown_and_its_name_legal() -> None:
    call = parsed('{"a": 1}', name="no such tool!")

    assert call.is_unknown
    assert call.arguments == {"a": 1}
    assert call.wire_name == "no_such_tool_"


def test_decision_4_unknown_comes_before_bad_arguments() -> None:
    assert parsed("{broken", name="nope").is_unknown


def test_e15_results_text_as_it_is_errors_marked_nothing_empty() -> None:
    def content(**fields: Any) -> str:
        return str(result_message("c", ToolResult("c", "w::a", **fields))["content"])

    assert content(result="plain") == "plain"
    assert content(result=[1, None]) == "[1,null]"
    assert content(result=None) == "null"
    assert content(error="it broke", error_type=ErrorType.execution) == "Error: it broke"
    assert content(error="ERROR: Not executed", error_type=ErrorType.conflict) == "ERROR: Not executed"


def test_s15_an_empty_result_is_said_not_sent_empty() -> None:
    assert result_message("c", ToolResult("c", "w::a", ""))["content"] == "(empty result)"


@given(JSON_VALUES)
def test_e15_any_result_becomes_content_that_can_be_encoded(value: Any) -> None:
    message = result_message("c", ToolResult("c", "w::a", value))

    assert message["content"]
    orjson.dumps(message)


@given(st.text(st.characters()) | JSON_VALUES)
def test_f20_whatever_arguments_a_model_writes_the_message_can_be_stored_and_parsed(arguments: Any) -> None:
    message = normalise_assistant(said(arguments), counted())

    orjson.dumps(message)
    assert isinstance(json.loads(message["tool_calls"][0]["function"]["arguments"]), dict)
    (call,) = parse_calls(message, NAMES)
    assert (call.call is None) == (call.problem is not None)


def test_known_keys_are_kept_and_others_dropped() -> None:
    raw: dict[str, Any] = {
        "role": "assistant",
        "content": "Hi",
        "annotations": [],
        "audio": None,
        "reasoning": "hm",
        "refusal": None,
    }

    assert normalise_assistant(raw, counted()) == {"role": "assistant", "content": "Hi", "reasoning_content": "hm"}
    assert normalise_assistant(raw, counted(), keep_reasoning=False) == {"role": "assistant", "content": "Hi"}


def test_text_parts_are_joined() -> None:
    raw: dict[str, Any] = {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}

    assert normalise_assistant(raw, counted()) == {"role": "assistant", "content": "ab"}


def test_a_refusal_is_a_message() -> None:
    message = normalise_assistant({"content": None, "refusal": "I cannot."}, counted())

    assert message == {"role": "assistant", "content": None, "refusal": "I cannot."}


@pytest.mark.parametrize(
    "raw",
    [
        None, 7, "text", [], {}, {"content": None}, {"content": ""}, {"content": " \n"}, {"content": 7},
        {"content": {"a": 1}}, {"content": [7]}, {"role": "user", "content": "x"}, {"role": 7, "content": "x"},
        {"content": "x", "tool_calls": "y"}, {"content": "x", "tool_calls": {"a": 1}}, {"tool_calls": [7]},
        {"tool_calls": [{}]}, {"tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]},
        {"tool_calls": [{"id": "a", "function": {"name": "", "arguments": "{}"}}]},
        {"tool_calls": [{"id": "a", "function": {"name": 7, "arguments": "{}"}}]},
        {"tool_calls": [{"id": "a", "function": "f"}]}, {"content": None, "tool_calls": []},
        {"tool_calls": [{"id": "a", "function": {"name": "f"}}] * (MAX_CALLS_IN_REPLY + 1)},
    ],
)  # fmt: skip
def test_f20_messages_of_wrong_shape_are_malformed_replies(raw: Any) -> None:
    with pytest.raises(MalformedReply):
        normalise_assistant(raw, counted())


def test_the_sdk_accepts_our_definitions_and_messages() -> None:
    overloaded = [WEATHER, Tool(name="get", namespace="weather"), Tool(name="now", parameters={})]
    TOOLS.validate_python(tool_definitions(overloaded, WireNames(overloaded)))
    raw = said('{"city": "Os')
    raw["tool_calls"] *= 2
    message = normalise_assistant(raw, counted())
    answers = [result_message(call["id"], ToolResult(call["id"], "w::a", {"a": 1})) for call in message["tool_calls"]]

    MESSAGES.validate_python([system("s"), user("u"), message, *answers, assistant("done")])
