"""The engine of recipes, with conversations that are played."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from engines.converse import Brief, Conversed
from engines.errors import ConfigurationInvalid
from engines.kind_settings import EngineParts
from engines.plain import JSONObject
from engines.recipes.engine import RecipeToolEngine
from engines.recipes.sub_agent import SUB_AGENT, SubAgent
from engines.registry import ToolRegistry
from engines.tool import ErrorType, Tool, ToolCall
from engines.toolset import Toolset
from tests.unit.engines.stage import no_speak

TASK = {"type": "object", "properties": {"task": {"type": "string"}, "tone": {"type": "string"}}, "required": ["task"]}
USED = {"model_calls": 2, "tool_calls": 1, "input_tokens": 20, "output_tokens": 10}


def stored(*, is_stateful: bool = False) -> JSONObject:
    """A pinned recipe with one tool."""
    entry = {"type": "inline", "namespace": "till", "tools": [{"name": "till::pay"}]}
    settings = {"till": {"stateful": is_stateful, "max_concurrency": None}}
    return {"format": 1, "recipe": {"tools": {"registry": [entry], "namespaces": settings}}}


@dataclass
class Played:
    """Conversations as a test wants them."""

    says: Callable[[Brief], Conversed] = lambda brief: Conversed(brief.arguments["task"], usage=USED)
    briefs: list[Brief] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    opened: int = 0
    fails_to_open: bool = False

    async def open(self) -> None:
        if self.fails_to_open:
            raise OSError("away")
        self.opened += 1

    async def close(self) -> None:
        self.opened -= 1

    async def __call__(self, brief: Brief) -> Conversed:
        self.briefs.append(brief)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        for _ in range(5):
            await asyncio.sleep(0)
        self.at_once -= 1
        return self.says(brief)


def tool(name: str = "ask", recipe: JSONObject | None = None, **more: Any) -> Tool:
    agent = SubAgent(recipe=recipe or stored(), prompt="{{ task }}", **more.pop("agent", {})).model_dump()
    return replace(Tool(name, "agents", parameters=TASK, metadata={SUB_AGENT: agent}), **more)


def built(played: Played, *tools: Tool, **parts: Any) -> RecipeToolEngine:
    toolset = Toolset("agents", "agents", tools or (tool(),))
    given: dict[str, Any] = {"converse_for": lambda _recipe: played} | parts
    return RecipeToolEngine.from_parts(
        EngineParts(
            "agents",
            {"type": "recipe"},
            (toolset,),
            ToolRegistry([toolset]),
            no_speak,
            lambda *_: pytest.fail("nothing routes here"),
            **given,
        )
    )


def call(task: str, name: str = "ask", **more: Any) -> ToolCall:
    return ToolCall(name, "agents", {"task": task, **more}, task)


async def test_a_result_tells_what_its_conversation_used() -> None:
    engine = built(Played())
    await engine.setup("s")
    (result,) = await engine.execute("s", [call("hello")])
    assert (result.result, result.metadata) == ("hello", {SUB_AGENT: USED})


async def test_a_failure_tells_it_too() -> None:
    engine = built(Played(lambda _: Conversed(error="no", error_type=ErrorType.limit, usage=USED)))
    await engine.setup("s")
    (result,) = await engine.execute("s", [call("hello")])
    assert (result.result, result.error, result.error_type) == (None, "no", ErrorType.limit)
    assert result.metadata == {SUB_AGENT: USED}


async def test_messages_are_kept_where_the_tool_says_so() -> None:
    messages = [{"role": "user", "content": "hello"}]
    played = Played(lambda _: Conversed("yes", messages=messages))
    engine = built(played, tool(), tool("kept", agent={"keep_messages": True}))
    await engine.setup("s")
    plain, kept = await engine.execute("s", [call("a"), call("b", "kept")])
    assert plain.metadata == {SUB_AGENT: {}}
    assert kept.metadata == {SUB_AGENT: {"messages": messages}}


async def test_d13_calls_are_told_apart_and_come_out_the_same_in_every_attempt() -> None:
    played = Played()
    for session in ("s", "t"):
        engine = built(played)
        await engine.setup(session, seed=7, auxdata={"job": 1})
        await engine.execute(session, [call("one"), call("one again")])
        await engine.execute(session, [call("two")])
    first, second = played.briefs[:3], played.briefs[3:]
    assert [brief.seed for brief in first] == [brief.seed for brief in second]
    assert len({brief.seed for brief in first}) == 3
    assert len({brief.session_id for brief in played.briefs}) == 6
    assert all(brief.auxdata == {"job": 1} for brief in first)


async def test_an_argument_that_is_left_out_puts_nothing_into_a_text() -> None:
    played = Played()
    engine = built(played)
    await engine.setup("s")
    await engine.execute("s", [call("one"), call("two", tone="warm")])
    assert [brief.arguments for brief in played.briefs] == [
        {"task": "one", "tone": ""},
        {"task": "two", "tone": "warm"},
    ]


@pytest.mark.parametrize(("is_stateful", "most"), [(False, 3), (True, 1)])
async def test_a11_conversations_of_a_batch_wait_for_each_other_where_a_job_has_one_place(
    is_stateful: bool, most: int
) -> None:
    played = Played()
    engine = built(played, tool(recipe=stored(is_stateful=is_stateful)))
    await engine.setup("s")
    results = await engine.execute("s", [call("a"), call("b"), call("c")])
    assert [result.result for result in results] == ["a", "b", "c"]
    assert played.most_at_once == most


@pytest.mark.parametrize(
    ("said", "result", "error_type"),
    [
        ('{"n": 1, "more": 2}', {"n": 1}, None),
        ('```json\n{"n": 1}\n```', {"n": 1}, None),
        ("It is one.", None, ErrorType.unparseable_result),
        ('{"n": "one"}', None, ErrorType.schema_violation),
    ],
)
async def test_d22_a_result_of_a_form_is_read_like_a_models(
    said: str, result: Any, error_type: ErrorType | None
) -> None:
    shape = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    played = Played(lambda _: Conversed(said, usage=USED))
    engine = built(played, tool(output_parameters=shape))
    await engine.setup("s")
    (told,) = await engine.execute("s", [call("hello")])
    assert (told.result, told.error_type, told.metadata) == (result, error_type, {SUB_AGENT: USED})
    (brief,) = played.briefs
    assert brief.response_format is not None
    assert brief.response_format["json_schema"]["schema"] == shape
    assert brief.is_result is not None
    assert brief.is_result(said) is (error_type is None)


async def test_recipes_are_opened_once_and_closed_and_a_failure_leaves_none_open() -> None:
    played, broken = Played(), Played(fails_to_open=True)
    engine = built(played, tool("a"), tool("b"))
    await engine.open()
    assert played.opened == 2
    await engine.close()
    assert played.opened == 0
    each = iter([played, broken])
    engine = built(played, tool("a"), tool("b"), converse_for=lambda _recipe: next(each))
    with pytest.raises(OSError, match="away"):
        await engine.open()
    assert played.opened == 0


def test_d67_a_tool_that_is_no_recipe_is_told() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"engines\.agents: .*'agents::plain' is none"):
        built(Played(), Tool("plain", "agents"))


def test_who_cannot_hold_conversations_says_so() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"engines\.agents\.type: nobody here can hold"):
        built(Played(), converse_for=None)
