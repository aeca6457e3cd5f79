"""The lm engine: what its model is asked, and what is made of the answers."""

import json
from typing import Any

import pytest

from engines.calling.faults import ErrorCategory
from engines.engine import ToolEngine
from engines.errors import ToolFailed
from engines.lm.engine import LMToolEngine
from engines.lm.prompt import INSTRUCTION
from engines.speak import Utterance
from engines.tool import ErrorType, Tool, ToolCall, ToolResult
from engines.toolset import Toolset
from tests.unit.engines.stage import ScriptedSpeak

SKY = {
    "type": "object",
    "properties": {"sky": {"type": "string"}, "alerts": {"type": "array", "items": {"type": "string"}}},
    "required": ["sky", "alerts"],
}
FREE = Tool("free", "w", "Anything.", {"type": "object", "properties": {"n": {"type": "integer", "default": 3}}})
STRICT = Tool("weather now", "w", "The weather.", output_parameters=SKY)
TOOLSET = Toolset("w", None, (FREE, STRICT))
GOOD = {"sky": "clear", "alerts": []}


def engine_that_says(*answers: Any, model_id: str = "granite", **more: Any) -> tuple[LMToolEngine, ScriptedSpeak]:
    """Return an engine whose model gives these answers one after the other, the last one for ever."""
    waiting = list(answers)
    speak = ScriptedSpeak(
        lambda _name, _arguments: waiting.pop(0) if len(waiting) > 1 else waiting[0], model_id=model_id
    )
    return LMToolEngine([TOOLSET], speak, **more), speak


async def answers(engine: ToolEngine, *tools: Tool, **arguments: Any) -> list[ToolResult]:
    if await engine.get_session_state("s") is None:
        await engine.setup("s")
    return await engine.execute("s", [ToolCall(tool.name, "w", arguments, "c") for tool in tools])


async def answer(said: Any, tool: Tool) -> ToolResult:
    engine, _ = engine_that_says(said)
    (result,) = await answers(engine, tool)
    return result


# The prompt


async def test_d19_the_prompt_is_the_rules_each_earlier_call_and_this_call() -> None:
    engine, speak = engine_that_says({"z": 1})
    await answers(engine, FREE, FREE, FREE)
    assert [len(asked["messages"]) for asked in speak.asked] == [2, 4, 6]
    assert [message["role"] for message in speak.asked[2]["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert speak.asked[0]["messages"][0]["content"] == INSTRUCTION


async def test_d19_what_was_said_before_is_the_same_text_the_next_time() -> None:
    engine, speak = engine_that_says({"z": 1})
    await answers(engine, FREE, STRICT, FREE)
    for earlier, later in zip(speak.asked, speak.asked[1:], strict=False):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]


async def test_d19_the_users_turn_is_specification_and_call_with_schema_defaults() -> None:
    engine, speak = engine_that_says({"z": 1})
    await answers(engine, FREE)
    head, _, rest = speak.asked[0]["messages"][1]["content"].partition("Tool specification:\n")
    specification, _, call = rest.partition("\n\nTool call:\n")
    assert head == ""
    assert json.loads(specification) == {
        "name": "w::free",
        "description": "Anything.",
        "parameters": FREE.parameters,
    }
    assert json.loads(call) == {"name": "w::free", "arguments": {"n": 3}}


@pytest.mark.parametrize(("model_id", "role"), [("gpt-5", "developer"), ("GPT-4o", "developer"), ("granite", "system")])
async def test_d20_the_rules_are_the_developers_for_gpt_models(model_id: str, role: str) -> None:
    engine, speak = engine_that_says({"z": 1}, model_id=model_id)
    await answers(engine, FREE)
    assert speak.asked[0]["messages"][0]["role"] == role


async def test_d21_the_response_format_is_the_output_schema_or_any_object() -> None:
    engine, speak = engine_that_says(GOOD)
    await answers(engine, STRICT, FREE)
    assert speak.asked[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "weather_now", "schema": SKY},
    }
    assert speak.asked[1]["response_format"] == {"type": "json_object"}


async def test_d28_an_earlier_error_is_shown_to_the_model() -> None:
    engine, speak = engine_that_says("hello", {"z": 1})
    await answers(engine, FREE, FREE)
    assert "failed to generate valid tool result" in json.loads(speak.asked[1]["messages"][2]["content"])["error"]


async def test_d15_a_simulated_call_sees_those_before_it_in_its_batch() -> None:
    engine, speak = engine_that_says({"first": 1}, {"second": 2})
    await engine.setup("s")
    await engine.simulate("s", [ToolCall("free", "w", {}), ToolCall("free", "w", {})])
    assert json.loads(speak.asked[1]["messages"][2]["content"]) == {"first": 1}


async def test_the_seed_differs_by_call_and_is_the_same_on_any_worker() -> None:
    seeds = []
    for seed in (1, 1, 2):
        engine, speak = engine_that_says({"z": 1})
        await engine.setup("s", seed=seed)
        await engine.execute("s", [ToolCall("free", "w", {}), ToolCall("free", "w", {})])
        seeds.append([asked["seed"] for asked in speak.asked])
        assert {asked["session_id"] for asked in speak.asked} == {"s"}
    assert seeds[0] == seeds[1]
    assert len({*seeds[0], *seeds[2]}) == 4


# The answer


async def test_d22_a_valid_answer_is_the_result() -> None:
    assert (await answer(GOOD, STRICT)).result == GOOD


async def test_d22_what_the_schema_does_not_declare_is_dropped() -> None:
    assert (await answer({**GOOD, "extra": 1}, STRICT)).result == GOOD


async def test_d22_dropping_goes_into_objects_and_lists() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    output = {"type": "object", "properties": {"list": {"type": "array", "items": inner}}}
    tool = Tool("deep", "w", output_parameters=output)
    speak = ScriptedSpeak(lambda _name, _arguments: {"list": [{"a": 1, "b": 2}]})
    (result,) = await answers(LMToolEngine([Toolset("w", None, (tool,))], speak), tool)
    assert result.result == {"list": [{"a": 1}]}


async def test_d22_an_envelope_is_taken_off() -> None:
    assert (await answer({"result": GOOD}, STRICT)).result == GOOD


async def test_d22_an_envelope_is_no_envelope_where_the_schema_declares_it() -> None:
    output = {"type": "object", "properties": {"result": {"type": "object"}}, "required": ["result"]}
    tool = Tool("wrapped", "w", output_parameters=output)
    speak = ScriptedSpeak(lambda _name, _arguments: {"result": {"x": 1}})
    (result,) = await answers(LMToolEngine([Toolset("w", None, (tool,))], speak), tool)
    assert result.result == {"result": {"x": 1}}


async def test_d22_where_the_schema_declares_result_nothing_is_unwrapped() -> None:
    output = {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]}
    tool = Tool("wrapped", "w", output_parameters=output)
    speak = ScriptedSpeak(lambda _name, _arguments: {"result": {"result": "x"}})
    (result,) = await answers(LMToolEngine([Toolset("w", None, (tool,))], speak), tool)
    assert result.error_type is ErrorType.schema_violation


async def test_d22_an_invalid_answer_is_an_error() -> None:
    result = await answer({"sky": 7, "alerts": []}, STRICT)
    assert result.error == 'failed to generate valid tool result: sky: 7 is not of type "string"'
    assert result.error_type is ErrorType.schema_violation


async def test_d23_required_empty_values_stay() -> None:
    assert (await answer({"sky": "", "alerts": []}, STRICT)).result == {"sky": "", "alerts": []}


async def test_d24_without_a_schema_the_answer_is_left_as_it_is() -> None:
    raw = {"result": {"z": 1}, "k": ""}
    assert (await answer(raw, FREE)).result == raw


@pytest.mark.parametrize("tool", [FREE, STRICT])
async def test_d25_an_error_of_the_model_is_an_error_of_the_tool(tool: Tool) -> None:
    result = await answer({"error": "no such city"}, tool)
    assert (result.error, result.error_type, result.result) == ("no such city", ErrorType.execution, None)


async def test_d25_an_empty_error_is_none_and_a_declared_one_is_a_result() -> None:
    assert (await answer({"error": None, "x": 1}, FREE)).result == {"error": None, "x": 1}
    output = {"type": "object", "properties": {"error": {"type": "string"}}}
    tool = Tool("declares", "w", output_parameters=output)
    speak = ScriptedSpeak(lambda _name, _arguments: {"error": "E1"})
    (result,) = await answers(LMToolEngine([Toolset("w", None, (tool,))], speak), tool)
    assert result.result == {"error": "E1"}


async def test_d26_the_likeliest_valid_candidate_is_chosen() -> None:
    candidates = [
        Utterance(json.dumps({"sky": "rain", "alerts": []}), -9.0, 10, 4),
        Utterance(json.dumps({"sky": "clear", "alerts": []}), -2.0, 0, 4),
        Utterance("not JSON", -0.1, 0, 4),
        Utterance(json.dumps({"sky": "snow", "alerts": []}), None, 0, 4),
    ]
    engine, speak = engine_that_says(candidates, candidates=4)
    (result,) = await answers(engine, STRICT)
    assert result.result == {"sky": "clear", "alerts": []}
    assert result.metadata == {"input_tokens": 10, "output_tokens": 16}
    assert speak.asked[0]["candidates"] == 4


@pytest.mark.parametrize("said", ["hello", "[1, 2]", "{}", "7", "", '{"a": NaN}', "[" * 100_000])
async def test_d27_what_is_no_object_is_an_error_and_never_raises(said: str) -> None:
    result = await answer(said, FREE)
    assert result.error_type is ErrorType.unparseable_result
    assert str(result.error).startswith("failed to generate valid tool result")


async def test_d27_an_empty_object_is_no_answer_to_a_schema_either() -> None:
    assert (await answer("{}", STRICT)).error_type is ErrorType.unparseable_result


async def test_a_code_fence_is_taken_off() -> None:
    assert (await answer('```json\n{"z": 1}\n```', FREE)).result == {"z": 1}


async def test_a_model_that_says_nothing_or_fails_is_an_error_result() -> None:
    assert (await answer([], FREE)).error_type is ErrorType.unparseable_result

    def fails(_name: str, _arguments: Any) -> Any:
        raise ToolFailed(ErrorType.network, "the model is away")

    (result,) = await answers(LMToolEngine([TOOLSET], ScriptedSpeak(fails)), FREE)
    assert (result.error, result.error_type) == ("the model is away", ErrorType.network)


@pytest.mark.parametrize("category", ["network_error", "unparseable_result", "schema_violation", "unheard_of"])
async def test_d33_an_injected_fault_asks_no_model(category: str) -> None:
    engine, speak = engine_that_says({"z": 1}, error_categories=[ErrorCategory(type=category, probability=1)])
    (result,) = await answers(engine, FREE)
    assert result.metadata == {"injected": category}
    assert speak.asked == []
