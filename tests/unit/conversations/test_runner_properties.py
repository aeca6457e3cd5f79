"""Decision 1 over random batches, edits, crashes and limits: each call id is answered once, and no call runs twice."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import orjson
from anthropic.types import MessageParam
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

from conversations.errors import HistoryInvalid, ModelUnavailable, ToolsInvalid
from conversations.messages import Message, assistant, call_ids_of, system, tool_call, tool_message, user
from conversations.models.model import ModelReply, ModelRequest
from conversations.policy.limits import Limits
from conversations.runner import ToolRunner
from conversations.selection import ToolSelection
from conversations.state import Mark, State
from conversations.wire.anthropic import Turns
from engines.engine import ToolEngine
from engines.tool import Tool, ToolCall, ToolResult

TOOLS = ToolSelection.of([Tool("x", "w"), Tool("y", "w"), Tool("out", "w")], external=["w::out"])
LIMITS = Limits(max_turns=6, max_tool_calls=3)
NO_STEPS_LEFT = 200
OPENAI: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
ANTHROPIC: TypeAdapter[Any] = TypeAdapter(list[MessageParam])


class CountingEngine(ToolEngine):
    """Answers all, and counts."""

    def __init__(self) -> None:
        super().__init__()
        self.ran: list[str | None] = []

    async def execute(self, session_id: str, tool_calls: Sequence[ToolCall]) -> list[ToolResult]:
        self.ran += [call.call_id for call in tool_calls]
        return [ToolResult(call.call_id, call.qualified_name, result={"of": call.call_id}) for call in tool_calls]

    async def _call(self, session: object, call: ToolCall, tool: object) -> Any:
        raise AssertionError


class CheckingModel:
    """Replies as it is told, and refuses what a provider would refuse."""

    model_id = "checking"

    def __init__(self, data: st.DataObject) -> None:
        self.data = data

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def ask(self, request: ModelRequest) -> ModelReply:
        assert_valid(request.messages)
        assert_accepted_by_both_providers(request)
        names = [tool["function"]["name"] for tool in request.tools or ()]
        assert len(names) == len(set(names))
        assert request.encoded_messages == [orjson.dumps(message) for message in request.messages]
        line = self.data.draw(REPLIES, "reply")
        if line is None:
            raise ModelUnavailable("down")
        return line


def assert_valid(messages: Sequence[Message]) -> None:
    seen: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert waiting, "an answer without a call, a second one, or one in the wrong place"
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert not waiting, "a call without an answer"
            waiting = call_ids_of(message)
            assert not seen.intersection(waiting)
            assert len(set(waiting)) == len(waiting)
            seen.update(waiting)
    assert not waiting


def assert_accepted_by_both_providers(request: ModelRequest) -> None:
    """As far as their own types tell, and Anthropic's words on how calls and results pair and turns alternate."""
    OPENAI.validate_python(request.messages)
    turns = request.memory.setdefault("turns", Turns())
    turns.take(request.messages, request.failed_call_ids)
    encoded = turns.encoded(mark_cache=False)
    afresh = Turns()
    afresh.take(request.messages, request.failed_call_ids)
    assert afresh.encoded(mark_cache=False) == encoded
    sent = orjson.loads(encoded)
    ANTHROPIC.validate_python(sent)
    assert all(one["role"] != other["role"] for one, other in pairwise(sent))
    waiting: list[str] = []
    for turn in sent:
        given = [block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"]
        assert given == waiting
        assert all(block["type"] == "tool_result" for block in turn["content"][: len(given)])
        waiting = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
    assert not waiting


CALLS = st.lists(
    st.builds(
        tool_call,
        st.sampled_from(["", "a", "b", "c"]),
        st.sampled_from(["w__x", "w__y", "w__out", "w__late", "nope"]),
        st.sampled_from(["{}", '{"n":1}', '{"n"']),
    ),
    min_size=1,
    max_size=5,
)
CALLING = st.builds(lambda tool_calls: assistant(None, tool_calls), CALLS)
REPLIES = st.one_of(
    st.builds(lambda message: ModelReply(message, "tool_calls", 1, 1, "m"), CALLING),
    st.builds(lambda message: ModelReply(message, "tool_calls", 1, 1, "m"), CALLING),
    st.just(ModelReply(assistant("done"), "stop", 1, 1, "m")),
    st.builds(
        lambda message, reason: ModelReply(message, reason, 1, 1, "m"),
        CALLING,
        st.sampled_from(["length", "content_filter", "refusal"]),
    ),
    st.none(),
)
EDITS = st.sampled_from(
    ["nothing"] * 6
    + ["say", "push back", "results", "both", "answer one", "own calls", "drop it", "keep half", "rewrite", "crash"]
    + ["tools come and go", "other parameters"]
)


class Crash(Exception):
    """The worker is gone."""


async def change(kind: str, runner: ToolRunner, message: Message, data: st.DataObject) -> None:
    history = runner.state.messages
    match kind:
        case "drop it":
            runner.set_messages([each for each in history if each is not message])
        case "keep half":
            runner.set_messages(history[: len(history) // 2])
        case "rewrite":
            runner.set_messages([system("in short"), user("go on")])
        case "crash":
            raise Crash
        case "tools come and go":
            name = data.draw(st.sampled_from(["x", "y", "out", "late"]), "tool")
            try:
                runner.remove_tools(name)
            except ToolsInvalid:
                runner.add_tools(name)
        case "other parameters":
            runner.set_params(temperature=data.draw(st.sampled_from([0, 1]), "temperature"))
        case _ if kind != "nothing":
            runner.append_messages(*await additions(kind, runner, message, data))


async def additions(kind: str, runner: ToolRunner, message: Message, data: st.DataObject) -> list[Message]:
    match kind:
        case "push back":
            return [message]
        case "results":
            return await runner.tool_response()
        case "both":
            return [message, *await runner.tool_response()]
        case "answer one" if call_ids_of(message):
            return [tool_message(data.draw(st.sampled_from(call_ids_of(message))), "by hand")]
        case "own calls":
            return [data.draw(CALLING), user("run these")]
    return [user("be concise")]


async def converse(data: st.DataObject) -> None:
    engine, state, deltas, mark = CountingEngine(), State(), [], Mark()
    state.append(user("hi"))
    for _ in range(NO_STEPS_LEFT):
        runner = ToolRunner(
            model=CheckingModel(data),
            engine=engine,
            session_id="s",
            state=state,
            tools=TOOLS,
            limits=LIMITS,
            catalogue=[Tool("late", "w")],
        )
        if state.status == "awaiting_tool_results":
            outside = [call.call_id for call in runner.pending_calls()]
            some = data.draw(st.lists(st.sampled_from(outside), unique=True, min_size=1), "answered from outside")
            if data.draw(st.booleans(), "the first of them by hand"):
                runner.append_messages(tool_message(str(some.pop(0)), "by hand"))
            runner.answer(ToolResult(call_id, "w::out", result="outside") for call_id in some)
        try:
            async for message in runner:
                deltas.append(state.delta(mark))
                mark = state.mark()
                try:
                    await change(data.draw(EDITS, "edit"), runner, message, data)
                except HistoryInvalid:
                    assert State.restore([*deltas, state.delta(mark)]) == state
        except (ModelUnavailable, Crash):
            state = State.restore(deltas)
            if not deltas:
                state.append(user("hi"))
            mark = state.mark() if deltas else Mark()
            # What was not in a checkpoint happens again, so only what is in it may not.
            engine.ran = [entry["call_id"] for entry in state.tool_results if "not_run" not in entry["metadata"]]
            continue
        deltas.append(state.delta(mark))
        mark = state.mark()
        if state.status != "awaiting_tool_results":
            break
        if data.draw(st.booleans(), "resumed elsewhere"):
            state = State.from_json(state.to_json())
    assert state.status in {"completed", "error"}
    assert_valid(state.messages)
    assert len(engine.ran) == len(set(engine.ran))
    entries = [entry["call_id"] for entry in state.tool_results]
    assert len(entries) == len(set(entries))
    assert sum("duplicate_of" not in entry["metadata"] for entry in state.tool_results) == state.tool_calls
    assert State.restore(deltas) == state
    assert state.turns <= LIMITS.max_turns


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_decision_1_every_call_id_is_answered_once_in_order_whatever_happens(data: st.DataObject) -> None:
    asyncio.run(converse(data))
