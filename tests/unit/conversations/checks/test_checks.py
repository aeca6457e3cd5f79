"""The checks: what each objects to, and what it lets through."""

from typing import Any

import pytest
from pydantic import ValidationError

from conversations.checks.finished import Finished
from conversations.checks.kinds import CHECKS, build_checks, findings_of
from conversations.checks.settings import CHECK_SETTINGS, check_settings
from conversations.errors import MalformedReply, ModelUnavailable
from conversations.messages import Message, assistant, tool_call, tool_message, user
from conversations.selection import ToolSelection
from tests.support.scripted_model import Line, ScriptedModel, script

TOOLS = ToolSelection.of([])


def entry(name: str = "w::get", error_type: str | None = None, **metadata: Any) -> dict[str, Any]:
    error = None if error_type is None else "no"
    return {"call_id": "a", "name": name, "result": 1, "error": error, "error_type": error_type, "metadata": metadata}


def finished(*messages: Message, results: list[dict[str, Any]] | None = None, turns: int = 1) -> Finished:
    return Finished(messages or [user("Hi"), assistant("Hello.")], results or [], TOOLS, turns, 7, "run.000001")


async def objection(block: dict[str, Any], conversation: Finished, model: ScriptedModel | None = None) -> str | None:
    (check,) = build_checks([check_settings(block)], lambda _: model or ScriptedModel([]))
    return await check.objection(conversation, {})


CALL = assistant(None, [tool_call("a", "w__get", "{}")])
AGAIN = [assistant(None, [tool_call(str(number), "w__get", '{"x":1}')]) for number in range(3)]
CIRCLE = "今日は天気がいいですね。それから何をしましょうか。私はまだ何も決めていません。"
LOOP = "The answer is that the answer is not known yet. " * 6

OBJECTED: dict[str, tuple[dict[str, Any], Finished, str]] = {
    "a call with bad arguments": (
        {"type": "valid_calls"},
        finished(results=[entry(error_type="validation")]),
        "1 calls were made wrongly",
    ),
    "an unknown tool": (
        {"type": "valid_calls", "at_most": 1},
        finished(results=[entry(error_type="unknown_tool"), entry(error_type="validation")]),
        "2 calls were made wrongly, at most 1 may",
    ),
    "a failed call": ({"type": "no_failed_calls"}, finished(results=[entry(error_type="timeout")]), "w::get (timeout)"),
    "a call without a result": ({"type": "no_orphan_ids"}, finished(user("x"), CALL), "call 'a' has no result"),
    "a call without a result in the middle": (
        {"type": "no_orphan_ids"},
        finished(user("x"), CALL, user("y")),
        "call 'a' has no result",
    ),
    "a result without a call": (
        {"type": "no_orphan_ids"},
        finished(user("x"), tool_message("a", "1")),
        "'a' is not where",
    ),
    "an id used twice": (
        {"type": "no_orphan_ids"},
        finished(user("x"), CALL, tool_message("a", "1"), CALL, tool_message("a", "1")),
        "'a' was used twice",
    ),
    "a refusal": (
        {"type": "no_refusal"},
        finished(user("x"), assistant("Sorry, I can\N{RIGHT SINGLE QUOTATION MARK}t help with that.")),
        "i can't help",
    ),
    "a refusal by the server": (
        {"type": "no_refusal"},
        finished(user("x"), assistant(None) | {"refusal": "no"}),
        "the model refused",
    ),
    "a phrase of one's own": (
        {"type": "no_refusal", "phrases": ["Out of Office"]},
        finished(user("x"), assistant("I am out of office.")),
        "out of",
    ),
    "the same text again": (
        {"type": "no_repetition"},
        finished(*[assistant("Hm.")] * 3),
        "the text 'Hm.' comes 3 times",
    ),
    "the same call again": ({"type": "no_repetition"}, finished(*AGAIN), "the call 'w__get({\"x\":1})' comes 3 times"),
    "a text in circles": ({"type": "no_repetition"}, finished(assistant(LOOP)), "goes round in circles"),
    "circles without spaces": ({"type": "no_repetition"}, finished(assistant(CIRCLE * 6)), "circles"),
    "too few turns": ({"type": "length", "min_turns": 2}, finished(), "1 turns, at least 2 must be"),
    "too many calls": (
        {"type": "length", "max_tool_calls": 1},
        finished(results=[entry(), entry()]),
        "2 tool calls, at most 1 may be",
    ),
    "too few words": ({"type": "length", "min_chars": 99}, finished(), "6 chars, at least 99"),
    "too many words": ({"type": "length", "max_chars": 3}, finished(), "6 chars, at most 3"),
    "no tool used": ({"type": "tool_coverage"}, finished(), "0 of the tools offered ran without error (none)"),
    "the wrong tool": (
        {"type": "tool_coverage", "tools": ["w::put", "v::*"]},
        finished(results=[entry()]),
        "0 of w::put, v::* ran",
    ),
    "a tool that failed": (
        {"type": "tool_coverage", "tools": ["w::*"]},
        finished(results=[entry(error_type="timeout")]),
        "0 of w::* ran",
    ),
    "too few different tools": (
        {"type": "tool_coverage", "at_least": 2},
        finished(results=[entry(), entry()]),
        "1 of the tools offered",
    ),
}

KEPT: dict[str, tuple[dict[str, Any], Finished]] = {
    "calls that were made rightly": ({"type": "valid_calls"}, finished(results=[entry(), entry(error_type="timeout")])),
    "as many wrong calls as may be": (
        {"type": "valid_calls", "at_most": 1},
        finished(results=[entry(error_type="validation")]),
    ),
    "a failure on purpose": (
        {"type": "no_failed_calls"},
        finished(results=[entry(error_type="timeout", injected="x")]),
    ),
    "a valid history": ({"type": "no_orphan_ids"}, finished(user("x"), CALL, tool_message("a", "1"), assistant("ok"))),
    "no refusal": ({"type": "no_refusal"}, finished(user("I can't help with that"), assistant("I can, gladly."))),
    "the same text twice": ({"type": "no_repetition"}, finished(*[assistant("Hm.")] * 2)),
    "a long text without circles": (
        {"type": "no_repetition"},
        finished(assistant(" ".join(f"word{number}" for number in range(3000)))),
    ),
    "within all bounds": (
        {"type": "length", "min_turns": 1, "max_turns": 1, "min_tool_calls": 0, "min_chars": 6, "max_chars": 6},
        finished(),
    ),
    "a tool of the namespace": ({"type": "tool_coverage", "tools": ["w::*"]}, finished(results=[entry()])),
    "the very tool": ({"type": "tool_coverage", "tools": ["w::get"]}, finished(results=[entry()])),
}


@pytest.mark.parametrize(("block", "conversation", "said"), OBJECTED.values(), ids=OBJECTED)
async def test_what_is_rejected_and_why(block: dict[str, Any], conversation: Finished, said: str) -> None:
    assert said in (await objection(block, conversation) or "")


@pytest.mark.parametrize(("block", "conversation"), KEPT.values(), ids=KEPT)
async def test_what_is_kept(block: dict[str, Any], conversation: Finished) -> None:
    assert await objection(block, conversation) is None


JUDGE = {"type": "judge", "rubric": "Be kind.", "threshold": 6}


async def test_a_judge_gives_points_by_its_rubric_and_they_are_noted() -> None:
    model = script(assistant('{"reason": "Rude.", "score": 3}'))
    (check,) = build_checks([check_settings(JUDGE)], lambda _: model)
    notes: dict[str, Any] = {}
    said = await check.objection(finished(user("Hi"), CALL, tool_message("a", "1"), assistant("Bye.")), notes)
    assert said == "3 points of 10, 6 are needed: Rude."
    assert notes == {"judge": {"score": 3, "reason": "Rude.", "input_tokens": 10, "output_tokens": 5}}
    (asked,) = model.asked
    assert asked.messages[0]["content"].endswith("Rubric: Be kind.")
    assert asked.messages[1]["content"] == "user: Hi\nassistant:\n→ w__get({})\ntool: 1\nassistant: Bye."
    assert asked.session_id == "run.000001.judge"


async def test_enough_points_are_enough() -> None:
    assert await objection(JUDGE, finished(), script(assistant('{"reason": "", "score": 6}'))) is None


@pytest.mark.parametrize("said", ["7", "no", "{}", '{"score": "high"}', '{"score": null}', "[]", '{"score": NaN}'])
async def test_a_judge_that_gives_no_points_decides_nothing(said: str) -> None:
    with pytest.raises(MalformedReply, match="gave no score"):
        await objection(JUDGE, finished(), script(assistant(said)))


async def test_a_judge_that_is_away_decides_nothing() -> None:
    with pytest.raises(ModelUnavailable):
        await objection(JUDGE, finished(), script(ModelUnavailable("down")))


async def test_the_first_objection_counts_and_a_judge_comes_last() -> None:
    lines: list[Line] = []
    model = ScriptedModel(lines)
    blocks = [JUDGE, {"type": "length", "min_turns": 9}, {"type": "tool_coverage"}]
    checks = build_checks([check_settings(block) for block in blocks], lambda _: model)
    findings = await findings_of(checks, finished())
    assert (findings.rejected_by, model.asked) == ("length", [])


async def test_without_objections_the_notes_are_kept() -> None:
    model = script(assistant('{"reason": "Fine.", "score": 9}'))
    checks = build_checks([check_settings(JUDGE), check_settings({"type": "no_refusal"})], lambda _: model)
    findings = await findings_of(checks, finished())
    assert findings.rejected_by is None
    assert findings.notes is not None
    assert findings.notes["judge"]["score"] == 9


@pytest.mark.parametrize(
    "block",
    [
        {"type": "nothing"},
        {},
        3,
        {"type": ["a"]},
        {"type": "length"},
        {"type": "length", "min_turns": 3, "max_turns": 2},
        {"type": "judge"},
        {"type": "judge", "rubric": "x", "threshold": 11},
        {"type": "no_refusal", "phrase": []},
        {"type": "no_repetition", "times": 1},
        {"type": "tool_coverage", "at_least": 0},
    ],
)
def test_blocks_that_are_no_checks_are_refused(block: Any) -> None:
    with pytest.raises((ValidationError, ValueError)):
        check_settings(block)


def test_every_kind_is_built() -> None:
    assert CHECK_SETTINGS.keys() == CHECKS.keys() | {"judge"}
