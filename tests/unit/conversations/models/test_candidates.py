"""Several replies a turn, of which one goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from conversations.errors import ModelUnavailable
from conversations.judge import ModelJudge
from conversations.messages import Message, assistant, tool_call, user
from conversations.models.candidates import CandidatesModel, JudgedChoice, first_valid, is_sound
from conversations.models.choosing import WeightedModels, model_id_for
from conversations.models.model import Alternative, ModelReply, ModelRequest
from tests.support.scripted_model import ScriptedModel, script

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get", "parameters": SCHEMA}}]


def calling(arguments: str, name: str = "get") -> Message:
    return assistant(None, [tool_call("a", name, arguments)])


GOOD = calling('{"city":"Oslo"}')
UNSOUND: dict[str, Alternative] = {
    "arguments that do not fit": Alternative(calling('{"city":3}')),
    "a missing argument": Alternative(calling("{}")),
    "arguments that were no JSON": Alternative(calling('{"malformed_arguments":"{"}')),
    "no object": Alternative(calling("[1]")),
    "a tool that is not there": Alternative(calling('{"city":"Oslo"}', "put")),
    "one good and one bad call": Alternative(
        assistant(None, [tool_call("a", "get", '{"city":"Oslo"}'), tool_call("b", "get", "{}")])
    ),
    "the same call twice": Alternative(assistant(None, [tool_call(each, "get", '{"city":"Oslo"}') for each in "ab"])),
    "nothing": Alternative(assistant(" ")),
    "cut off": Alternative(assistant("The answer is"), finish_reason="length"),
    "filtered": Alternative(assistant("x"), finish_reason="content_filter"),
    "a refusal": Alternative(assistant("x") | {"refusal": "no"}),
}


@dataclass
class Several:
    """Gives these candidates."""

    candidates: Sequence[Alternative]
    model_id: str = "several"
    asked: list[ModelRequest] = field(default_factory=list)
    states: list[str] = field(default_factory=list)

    async def open(self) -> None:
        self.states.append("open")

    async def close(self) -> None:
        self.states.append("closed")

    async def ask(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        return ModelReply(self.candidates[0].message, "stop", 10, 20, "m", 1, tuple(self.candidates))


def request() -> ModelRequest:
    return ModelRequest([user("Weather?")], tools=TOOLS, seed=5, session_id="s")


@pytest.mark.parametrize("candidate", UNSOUND.values(), ids=UNSOUND)
async def test_the_first_sound_one_goes_on(candidate: Alternative) -> None:
    assert not is_sound(candidate, request())
    several = Several([candidate, Alternative(GOOD), Alternative(assistant("Later."))])
    reply = await CandidatesModel(several, 3, first_valid).ask(request())
    assert (reply.message, reply.finish_reason, reply.alternatives) == (GOOD, "tool_calls", ())
    assert (reply.input_tokens, reply.output_tokens) == (10, 20)
    assert several.asked[0].candidates == 3


async def test_when_none_is_sound_the_first_goes_on() -> None:
    several = Several([Alternative(calling("{}")), Alternative(assistant(""))])
    assert (await CandidatesModel(several, 2, first_valid).ask(request())).message == calling("{}")


async def test_what_ended_the_preferred_one_is_what_ended_the_turn() -> None:
    cut = [Alternative(assistant("a"), finish_reason="length"), Alternative(assistant("b"), finish_reason="stop")]
    assert (await CandidatesModel(Several(cut), 2, first_valid).ask(request())).finish_reason == "stop"
    assert (await CandidatesModel(Several(cut[:1] * 2), 2, first_valid).ask(request())).finish_reason == "length"


async def test_a_server_that_gives_one_is_taken_at_its_word() -> None:
    reply = await CandidatesModel(Several([Alternative(calling("{}"))]), 2, first_valid).ask(request())
    assert reply.message == calling("{}")


async def test_who_asks_for_candidates_gets_them() -> None:
    several = Several([Alternative(GOOD)] * 4)
    asked = ModelRequest([user("x")], candidates=4)
    assert len((await CandidatesModel(several, 2, first_valid).ask(asked)).alternatives) == 4
    assert several.asked == [asked]


def judged(judge: ScriptedModel, *candidates: Alternative) -> CandidatesModel:
    return CandidatesModel(Several(candidates), 2, JudgedChoice(ModelJudge(judge, "Short is good.")))


async def test_a_judge_chooses_among_the_sound_ones_and_its_tokens_count() -> None:
    judge = script(assistant('{"reason": "short", "best": 2}'))
    candidates = [Alternative(assistant("A long story.")), UNSOUND["nothing"], Alternative(assistant("Hi."))]
    reply = await judged(judge, *candidates).ask(request())
    assert reply.message == assistant("Hi.")
    assert (reply.input_tokens, reply.output_tokens) == (20, 25)
    shown = judge.asked[0].messages[1]["content"]
    assert shown == "user: Weather?\n\nMessage 1:\nassistant: A long story.\n\nMessage 2:\nassistant: Hi."


async def test_where_only_one_is_sound_nobody_is_asked() -> None:
    judge = script()
    assert (await judged(judge, UNSOUND["nothing"], Alternative(GOOD)).ask(request())).message == GOOD
    assert judge.asked == []


@pytest.mark.parametrize("said", ['{"reason": "", "best": 9}', '{"reason": "", "best": 0}', "what?"])
async def test_a_judge_that_makes_no_choice_costs_nothing_but_the_choice(said: str) -> None:
    reply = await judged(script(assistant(said)), Alternative(GOOD), Alternative(assistant("Hi."))).ask(request())
    assert reply.message == GOOD


async def test_a_judge_that_is_away_fails_the_turn() -> None:
    with pytest.raises(ModelUnavailable):
        await judged(script(ModelUnavailable("x")), Alternative(GOOD), Alternative(assistant("Hi."))).ask(request())


async def test_opening_closing_and_names_go_through() -> None:
    several = Several([Alternative(GOOD)])
    model = CandidatesModel(several, 2, first_valid)
    await model.open()
    await model.close()
    assert several.states == ["open", "closed"]
    assert (model.model_id, model.inner) == ("several", several)
    assert model_id_for(CandidatesModel(WeightedModels([(several, 1)]), 2, first_valid), "s") == "several"
