"""A conversation of the real loop and the real local engine on a scripted model; what must hold of its history."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from conversations.encoding import encode_json
from conversations.messages import Message, call_ids_of, user
from conversations.policy.limits import Limits
from conversations.runner import ToolRunner
from conversations.selection import Selector, ToolSelection
from conversations.state import State
from engines.engine import ToolEngine
from engines.loading import load_registry
from engines.wiring import build_engine
from tests.support import counting_tools
from tests.support.scripted_model import Line, ScriptedModel, script

SESSION = "run.000001"
ADD = ("a", "w__add", {"a": 1, "b": 2})
ECHO = ("e", "w__echo", {"text": "x"})


class World:
    """One conversation's parts: a scripted model, the real engine, a state."""

    def __init__(self, engine: ToolEngine, tools: ToolSelection) -> None:
        self.engine, self.tools = engine, tools
        self.model = ScriptedModel([])
        self.state = State()
        self.state.append(user("hi"))

    def runner(self, *lines: Line, limits: Limits | None = None, **options: Any) -> ToolRunner:
        self.model = script(*lines)
        return ToolRunner(
            model=self.model,
            engine=options.pop("engine", self.engine),
            session_id=SESSION,
            state=options.pop("state", self.state),
            tools=options.pop("tools", self.tools),
            limits=limits or Limits(),
            **options,
        )

    @property
    def asked(self) -> list[list[str]]:
        """The roles of each request's messages."""
        return [[message["role"] for message in asked.messages] for asked in self.model.asked]


@asynccontextmanager
async def world_of(**namespace: Any) -> AsyncIterator[World]:
    counting_tools.RUNS.clear()
    configuration = counting_tools.configuration(**namespace)
    registry = load_registry(configuration, folder=Path(), environment={})
    engine = build_engine(configuration, registry, speak_for=_no_model)
    await engine.open()
    await engine.setup(SESSION)
    try:
        yield World(engine, Selector(registry).select(None))
    finally:
        await engine.teardown(SESSION)
        await engine.close()


def _no_model(_: object) -> Any:
    raise AssertionError


def assert_valid(messages: Sequence[Message]) -> None:
    """Decision 1, as a provider sees it: each call answered once, in order, right after its message."""
    seen: list[str] = []
    position = 0
    while position < len(messages):
        wanted = call_ids_of(messages[position])
        answers = messages[position + 1 : position + 1 + len(wanted)]
        assert [answer.get("tool_call_id") for answer in answers] == wanted
        position += 1 + len(wanted)
        seen += wanted
        assert position == len(messages) or messages[position]["role"] != "tool"
    assert len(seen) == len(set(seen))


def assert_each_request_was_valid(world: World) -> None:
    for asked in world.model.asked:
        assert_valid(asked.messages)
        assert asked.encoded_messages == [encode_json(message) for message in asked.messages]


async def mutate_once(runner: ToolRunner, at: int, change: Callable[[ToolRunner, Message], Any]) -> list[Message]:
    """Run; change the history while looking at the message number `at`."""
    yielded: list[Message] = []
    async for message in runner:
        if len(yielded) == at:
            result = change(runner, message)
            if asyncio.iscoroutine(result):
                await result
        yielded.append(message)
    return yielded
