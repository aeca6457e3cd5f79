"""The simulated user: what it sees, when it stops, its own tools, and that another process can go on with it."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from conversations.encoding import encode_json
from conversations.errors import MalformedReply, ModelUnavailable
from conversations.messages import Message, assistant, system, tool_message, user
from conversations.policy.limits import Limits, UserLimits
from conversations.runner import ToolRunner
from conversations.selection import Selector
from conversations.simulated_user import SimulatedUser
from conversations.state import State
from conversations.user_settings import STOP, UserSettings
from engines.engine import ToolEngine
from engines.loading import load_registry
from engines.wiring import build_engine
from tests.support import counting_tools
from tests.support.scripted_model import Line, ScriptedModel, calls, script

SESSION = "run.000001"


class Stage:
    """An assistant and a user, both scripted, on one real engine."""

    def __init__(self, engine: ToolEngine, selector: Selector) -> None:
        self.engine, self.selector = engine, selector
        self.state = State(messages=[user("How warm is it?")])
        self.assistant = self.user = ScriptedModel([])

    def runner(self, assistant_says: Sequence[Line], user_says: Sequence[Line], **options: Any) -> ToolRunner:
        self.assistant, self.user = script(*assistant_says), script(*user_says)
        settings = UserSettings.model_validate({"persona": "You are brief.", "goal": "Know the weather."} | options)
        own = self.selector.named(settings.tools) if settings.tools else None
        played = SimulatedUser(
            model=self.user,
            settings=settings,
            persona=settings.persona_for(1),
            goal=settings.goal or "",
            seed=1,
            conversation_id=SESSION,
            engine=self.engine,
            session_id=SESSION,
            tools=own,
        )
        return ToolRunner(
            model=self.assistant,
            engine=self.engine,
            session_id=SESSION,
            state=self.state,
            tools=self.selector.select(None, settings.tools),
            limits=Limits(user=UserLimits(settings.max_user_turns, settings.opens)),
            simulated_user=played,
        )

    @property
    def seen(self) -> list[list[Message]]:
        """What the user's model was shown, without its instructions."""
        return [asked.messages[1:] for asked in self.user.asked]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    counting_tools.RUNS.clear()
    configuration = counting_tools.configuration()
    registry = load_registry(configuration, folder=Path(), environment={})
    engine = build_engine(configuration, registry, speak_for=lambda _: pytest.fail("no model is asked"))
    await engine.open()
    await engine.setup(SESSION)
    yield Stage(engine, Selector(registry))
    await engine.teardown(SESSION)
    await engine.close()


def say(text: str) -> Message:
    return assistant(text)


async def test_user_and_assistant_take_turns_until_the_user_stops(stage: Stage) -> None:
    runner = stage.runner([say("4 degrees."), say("Rain.")], [say("And tomorrow?"), say(STOP)])
    yielded = [message async for message in runner]
    assert yielded == [say("4 degrees."), user("And tomorrow?"), say("Rain.")]
    assert (stage.state.status, stage.state.turns) == ("completed", 2)
    assert stage.state.user["turns"] == 1


async def test_the_user_sees_the_roles_changed_over_and_no_tool_calls(stage: Stage) -> None:
    add = ("a", "w__add", {"a": 1, "b": 2})
    await stage.runner([calls(add), say("3."), say("Yes.")], [say("Sure?"), say(STOP)]).until_done()
    assert stage.seen[0] == [user("(The conversation begins. Say what you want.)"), say("How warm is it?"), user("3.")]
    assert stage.seen[1][1:] == [say("How warm is it?"), user("3."), say("Sure?"), user("Yes.")]
    instructions = stage.user.asked[0].messages[0]["content"]
    assert instructions.endswith("Who you are: You are brief.\n\nWhat you want: Know the weather.")
    assert STOP in instructions
    assert stage.user.asked[0].session_id == f"{SESSION}.user"


async def test_its_turns_are_bounded(stage: Stage) -> None:
    await stage.runner(
        [say("a"), say("b"), say("c")], [say("more"), say("more"), say("more")], max_user_turns=2
    ).until_done()
    assert [message["role"] for message in stage.state.messages] == ["user", "assistant"] * 3
    assert len(stage.user.asked) == 2


async def test_before_its_least_turns_a_stop_counts_for_nothing(stage: Stage) -> None:
    lines = [say(STOP), say(f"One more thing. {STOP}"), say(STOP)]
    await stage.runner([say("a"), say("b")], lines, min_user_turns=1).until_done()
    assert stage.state.messages[2] == user("One more thing.")
    assert stage.seen[1][-1]["content"] == "(Go on: you are not done yet.)"
    assert stage.state.user["turns"] == 1


async def test_the_stop_and_a_farewell_beside_it_never_enter_the_transcript(stage: Stage) -> None:
    await stage.runner([say("4 degrees.")], [say(f"Thanks, bye! {STOP}")]).until_done()
    assert stage.state.messages == [user("How warm is it?"), say("4 degrees.")]


async def test_a_user_that_says_nothing_is_an_error_of_its_model(stage: Stage) -> None:
    with pytest.raises(MalformedReply, match="said nothing"):
        await stage.runner([say("a")], [say(" ")] * 3).until_done()
    assert stage.state.messages[-1] == say("a")


async def test_it_may_speak_first(stage: Stage) -> None:
    stage.state = State(messages=[system("You help.")])
    await stage.runner([say("Hello.")], [say("Hi there."), say(STOP)], opens=True).until_done()
    assert stage.state.messages == [system("You help."), user("Hi there."), say("Hello.")]
    assert len(stage.seen[0]) == 1


async def test_its_calls_and_tokens_are_counted_apart(stage: Stage) -> None:
    await stage.runner([say("a"), say("b")], [say("more"), say(STOP)]).until_done()
    kept = stage.state.user
    assert (kept["model_calls"], kept["input_tokens"], kept["output_tokens"]) == (2, 20, 10)
    assert (stage.state.turns, stage.state.input_tokens) == (2, 20)
    assert stage.state.all_tokens == 60


async def test_its_own_tools_run_on_the_session_and_stay_its_own(stage: Stage) -> None:
    own = ("u", "w__echo", {"text": "my diary"})
    lines = [calls(own), say("My diary says so."), say(STOP)]
    await stage.runner([say("a"), say("b")], lines, tools=["w::echo"]).until_done()
    assert counting_tools.RUNS == [("echo", "my diary")]
    assert stage.state.messages == [user("How warm is it?"), say("a"), user("My diary says so."), say("b")]
    assert stage.state.tool_results == []
    assert stage.seen[1][-2:] == [calls(own), tool_message("u", "my diary")]
    offered = [asked.tools for asked in stage.assistant.asked]
    assert all("w__echo" not in str(tools) for tools in offered)
    history = await stage.engine.get_session_state(SESSION)
    assert history is not None
    names: Any = stage.selector.named(["w::echo"]).names
    assert stage.state.history_entries(stage.selector.select(None).names, names) == history["history"]


async def test_a_call_of_an_unknown_tool_is_told_to_the_user(stage: Stage) -> None:
    lines = [calls(("u", "w__add", {"a": 1, "b": 1})), say("Well then."), say(STOP)]
    await stage.runner([say("a"), say("b")], lines, tools=["w::echo"]).until_done()
    assert counting_tools.RUNS == []
    assert "Unknown tool" in stage.seen[1][-1]["content"]


async def test_it_cannot_call_tools_for_ever(stage: Stage) -> None:
    lines: list[Line] = [calls((f"u{number}", "w__echo", {"text": str(number)})) for number in range(5)]
    await stage.runner([say("a"), say("b")], [*lines, say("Enough."), say(STOP)], tools=["w::echo"]).until_done()
    assert stage.user.asked[5].tools is None
    assert len(counting_tools.RUNS) == 5


async def test_another_process_goes_on_where_it_was(stage: Stage) -> None:
    own = ("u", "w__echo", {"text": "1"})
    runner = stage.runner([say("a")], [calls(own), say("Go on.")], tools=["w::echo"])
    async for message in runner:
        if message["role"] == "user":
            break
    stage.state = State.from_json(stage.state.to_json())
    await stage.runner([say("b")], [say(STOP)], tools=["w::echo"]).until_done()
    assert stage.seen[0][-3:] == [tool_message("u", "1"), say("Go on."), user("b")]
    assert stage.state.user["model_calls"] == 3
    assert stage.state.status == "completed"


async def test_a_failing_model_leaves_the_state_to_go_on_with(stage: Stage) -> None:
    with pytest.raises(ModelUnavailable):
        await stage.runner([say("a")], [ModelUnavailable("down")]).until_done()
    assert stage.state.messages[-1] == say("a")
    await stage.runner([say("b")], [say("And?"), say(STOP)]).until_done()
    assert stage.state.messages[-1] == say("b")


async def test_limits_end_a_conversation_that_is_whole_as_completed(stage: Stage) -> None:
    runner = stage.runner([say("a")], [say("more")] * 3)
    runner._limits = Limits(max_turns=1, user=UserLimits(3))
    await runner.until_done()
    assert (stage.state.status, stage.user.asked) == ("completed", [])


def test_a_persona_is_drawn_by_the_seed() -> None:
    settings = UserSettings(personas=("a", "b", "c"))
    drawn = [settings.persona_for(seed) for seed in range(60)]
    assert set(drawn) == {"a", "b", "c"}
    assert drawn == [settings.persona_for(seed) for seed in range(60)]
    assert UserSettings().persona_for(1) == ""


@pytest.mark.parametrize(
    "wrong",
    [{"persona": "a", "personas": ["b"]}, {"min_user_turns": 5}, {"max_user_turns": 0}, {"stop": ""}, {"person": "a"}],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        UserSettings.model_validate(wrong)


async def test_what_the_user_sees_is_made_and_encoded_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Message] = []

    def noting(message: Message) -> bytes:
        encoded.append(message)
        return encode_json(message)

    monkeypatch.setattr("conversations.simulated_user.encode_json", noting)
    await stage.runner([say("a"), say("b"), say("c")], [say("1"), say("2"), say("3")], max_user_turns=2).until_done()
    assert len(encoded) == len(stage.user.asked[-1].messages)
    for asked in stage.user.asked:
        assert asked.encoded_messages == [encode_json(message) for message in asked.messages]
