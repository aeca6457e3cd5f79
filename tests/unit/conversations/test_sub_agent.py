"""A conversation behind a tool, against a scripted model and real local tools."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conversations.checks.finished import Check, Finished
from conversations.errors import ModelTimeout
from conversations.messages import JSONObject, assistant, tool_message, user
from conversations.policy.limits import Limits
from conversations.recipe import Recipe
from conversations.runner import ToolRunner
from conversations.selection import Selector
from conversations.state import State
from conversations.stopping import stopping_when
from conversations.sub_agent import HeldRecipe
from engines.configuration import ToolsConfiguration
from engines.converse import Brief, Conversed
from engines.engine import ToolEngine
from engines.errors import ToolFailed
from engines.lm.prompt import response_format_for
from engines.loading import load_registry
from engines.tool import ErrorType, Tool
from engines.wiring import build_engine
from tests.support.a2a_server import a2a_server
from tests.support.scripted_model import Line, ScriptedModel, calls, reply, script
from tests.unit.engines.stage import no_speak

RECIPE: JSONObject = {
    "model": {"provider": "offline"},
    "conversation": {"system": "You know about {{ task }}.", "max_turns": 3},
    "tools": {
        "registry": [
            {
                "type": "inline",
                "namespace": "weather",
                "engine": "code",
                "tools": [{"name": "get_weather", "parameters": {"type": "object", "required": ["city"]}}],
            }
        ],
        "engines": {"code": {"type": "local", "module": "tests.support.weather_functions", "inline": True}},
    },
}
BRIEF = Brief("Tell me about {{ task }}", {"task": "Lisbon"}, seed=5, session_id="s.1")
WEATHER = ("c", "weather__get_weather", {"city": "Lisbon"})
SHAPE = Tool("t", output_parameters={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})


def in_shape(text: str) -> bool:
    return text.startswith("{")


def held(*lines: Line, checks: Sequence[Check] = (), **conversation: Any) -> HeldRecipe:
    written = RECIPE | {"conversation": RECIPE["conversation"] | conversation}
    recipe = Recipe.model_validate(written)
    registry = load_registry(recipe.tools, folder=Path(), environment={})
    engine = build_engine(recipe.tools, registry, speak_for=no_speak)
    return HeldRecipe(recipe, script(*lines), engine, Selector(registry), checks)


def model_of(agent: HeldRecipe) -> ScriptedModel:
    assert isinstance(agent.model, ScriptedModel)
    return agent.model


async def is_torn_down(engine: ToolEngine) -> bool:
    return await engine.get_session_state(BRIEF.session_id) is None


async def test_its_last_text_is_told_with_what_it_used() -> None:
    agent = held(calls(WEATHER), assistant("Sunny."))
    told = await agent(BRIEF)
    assert (told.text, told.error) == ("Sunny.", None)
    assert told.usage == {"model_calls": 2, "tool_calls": 1, "input_tokens": 20, "output_tokens": 10}
    assert [message["role"] for message in told.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert [message["content"] for message in told.messages[:2]] == [
        "You know about Lisbon.",
        "Tell me about Lisbon",
    ]
    assert await is_torn_down(agent.engine)


async def test_each_call_is_a_conversation_of_its_own_with_a_seed_of_its_own() -> None:
    agent = held(assistant("one"), assistant("two"), assistant("three"))
    for seed in (5, 6, 5):
        await agent(replace(BRIEF, seed=seed))
    first, second, third = model_of(agent).asked
    assert len(second.messages) == len(first.messages)
    assert (first.seed, first.session_id) == (third.seed, third.session_id)
    assert first.seed != second.seed
    assert first.session_id != second.session_id


@pytest.mark.parametrize(
    ("lines", "conversation", "error_type", "said"),
    [
        ([calls(WEATHER)] * 3, {}, ErrorType.limit, "the sub-agent ended with max_turns"),
        ([ModelTimeout("no answer")], {}, ErrorType.timeout, "the sub-agent's model failed: no answer"),
        ([assistant("")], {}, ErrorType.execution, "the sub-agent ended without a word"),
        ([reply(assistant("I..."), "refusal")], {}, ErrorType.execution, "the sub-agent ended with refusal"),
        ([], {"system": "About {{ nothing }}"}, ErrorType.validation, "'nothing' is undefined"),
        ([], {"tool_choice": "no::tool"}, ErrorType.execution, "the sub-agent failed: tool_choice"),
    ],
)
async def test_what_goes_wrong_in_it_is_told(
    lines: list[Line], conversation: JSONObject, error_type: ErrorType, said: str
) -> None:
    agent = held(*lines, **conversation)
    told = await agent(BRIEF)
    assert (told.text, told.error_type) == ("", error_type)
    assert said in str(told.error)
    assert told.usage["model_calls"] == sum(not isinstance(line, Exception) for line in lines)
    assert await is_torn_down(agent.engine)


class Objects:
    """A check that objects to everything."""

    name = "taste"

    async def objection(self, finished: Finished, notes: JSONObject) -> str | None:
        return f"{len(finished.messages)} messages are not enough"


async def test_its_own_checks_reject_it() -> None:
    told = await held(assistant("Hm."), checks=[Objects()])(BRIEF)
    assert told.error == "the sub-agent's check taste failed: 3 messages are not enough"


def in_form(agent: HeldRecipe) -> Any:
    brief = replace(BRIEF, response_format=response_format_for(SHAPE), is_result=in_shape)
    return agent(brief)


async def test_a_result_in_form_is_taken_as_it_is() -> None:
    agent = held(assistant('{"n": 1}'))
    told: Conversed = await in_form(agent)
    assert told.text == '{"n": 1}'
    prompt = model_of(agent).asked[0].messages[-1]["content"]
    assert prompt.startswith("Tell me about Lisbon\n\nEnd with one JSON value")
    assert '"required":["n"]' in prompt


async def test_a_result_without_its_form_is_asked_for_once_more() -> None:
    agent = held(calls(WEATHER), assistant("It is one."), assistant('{"n": 1}'))
    told: Conversed = await in_form(agent)
    assert told.text == '{"n": 1}'
    assert told.usage["model_calls"] == 3
    last = model_of(agent).asked[-1]
    assert last.tools is None
    assert last.messages[-1]["role"] == "user"


async def test_a_session_that_cannot_be_set_up_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = held()

    async def refuse(*_: Any, **__: Any) -> None:
        raise ToolFailed(ErrorType.network, "the backend is away")

    monkeypatch.setattr(agent.engine, "setup", refuse)
    told = await agent(BRIEF)
    assert (told.error_type, told.error) == (
        ErrorType.network,
        "the sub-agent's tools cannot be set up: the backend is away",
    )


async def test_a_job_that_is_stopped_stops_its_sub_agent_before_its_next_call() -> None:
    agent = held(calls(WEATHER), calls(WEATHER), assistant("Sunny."))
    with stopping_when(lambda: bool(model_of(agent).asked)):
        told = await agent(BRIEF)
    assert told.error == "the sub-agent was stopped with its job"
    assert told.usage["tool_calls"] == 0
    assert await is_torn_down(agent.engine)
    assert (await agent(BRIEF)).text == "Sunny."


async def test_a_session_that_cannot_be_torn_down_costs_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = held(assistant("Sunny."))

    async def refuse(*_: Any, **__: Any) -> None:
        raise OSError("the backend does not let go")

    monkeypatch.setattr(agent.engine, "teardown", refuse)
    assert (await agent(BRIEF)).text == "Sunny."


async def test_u12_an_agent_elsewhere_may_take_the_conversation_over() -> None:
    async with a2a_server() as agency:
        entry = {"type": "a2a", "url": agency.url, "namespace": "desk", "takes_control": True}
        written = {"registry": [entry], "engines": {"agents": {"type": "a2a", "url": agency.url}}}
        configuration = ToolsConfiguration.model_validate(written)
        registry = await asyncio.to_thread(load_registry, configuration, folder=Path(), environment={})
        engine = build_engine(configuration, registry, speak_for=no_speak)
        await engine.setup("s")
        model = script(calls(("c", "desk__echo", {"message": "hello"})))
        state = State(messages=[user("Hand me over.")])
        tools = Selector(registry).select(None)
        runner = ToolRunner(model=model, engine=engine, session_id="s", state=state, tools=tools, limits=Limits())
        last = await runner.until_done()
        await engine.close()
    assert (state.status, last) == ("completed", tool_message("c", "echo: hello"))
