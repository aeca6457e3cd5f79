"""What becomes of the calls of one message, before any of them runs (decision 4; rules U10, U11, U16)."""

from itertools import product
from typing import Any

import pytest

from conversations.answers import plan
from conversations.messages import call_ids_of, user
from conversations.policy.limits import Limits
from conversations.selection import ToolSelection
from conversations.state import State
from engines.tool import Tool
from tests.support.loop_world import assert_valid, world_of
from tests.support.scripted_model import calls

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = ToolSelection.of(
    [
        Tool("say", "w", parameters=TEXT),
        Tool("ask", "w", parameters=TEXT),
        Tool("hand", "w", metadata={"takes_control": True}),
    ],
    external=["w::ask"],
)
CONDITIONS = ("is_copy", "in_conflict", "over_limit", "is_unknown", "is_invalid", "is_external")


def expected(now: dict[str, bool]) -> str:
    """Decision 4, read from top to bottom: the first that is true says what the call comes to."""
    if now["is_copy"] and not now["is_unknown"]:  # nobody knows what two calls of an unknown tool would have been
        return "copy"
    if now["in_conflict"]:
        return "conflict"
    if now["over_limit"]:
        return "limit"
    if now["is_unknown"]:
        return "unknown_tool"
    if now["is_invalid"]:
        return "validation" if now["is_external"] else "the engine's"  # which validates what it runs
    return "pending" if now["is_external"] else "the engine's"


def told(now: dict[str, bool]) -> str:
    """What the plan says of the last call of a batch made so."""
    name = "nope" if now["is_unknown"] else "w__ask" if now["is_external"] else "w__say"
    arguments: dict[str, Any] = {"text": 7} if now["is_invalid"] else {"text": "x"}
    before: list[tuple[str, str, dict[str, Any]]] = [("first", "w__say", {"text": "first"})]
    if now["is_copy"]:
        before.append(("same", name, arguments))
    if now["in_conflict"]:
        before.append(("hand", "w__hand", {}))
    message = calls(*before, ("it", name, arguments))
    limits = Limits(max_tool_calls=len(before) if now["over_limit"] else len(before) + 1)
    planned = plan(message, call_ids_of(message), TOOLS, limits, calls_before=0)
    found = ["copy"] if "it" in planned.copies else []
    found += [str(result.error_type) for call_id, result in planned.refused.items() if call_id == "it"]
    found += ["pending"] if "it" in planned.external else []
    found += ["the engine's"] if "it" in [call.call_id for call in planned.calls] else []
    assert len(found) == 1, "each call has one place"
    return found[0]


@pytest.mark.parametrize("values", list(product([False, True], repeat=len(CONDITIONS))))
def test_decision_4_u11_the_truth_table_of_all_policies(values: tuple[bool, ...]) -> None:
    now = dict(zip(CONDITIONS, values, strict=True))
    assert told(now) == expected(now)


def test_u11_duplicates_are_found_before_the_limit_counts_and_both_without_being_asked_for() -> None:
    message = calls(*[(f"c{number}", "w__say", {"text": str(number // 2)}) for number in range(6)])
    planned = plan(message, call_ids_of(message), TOOLS, Limits(max_tool_calls=2), calls_before=0)
    assert planned.copies == {"c1": "c0", "c3": "c2", "c5": "c4"}
    assert [call.call_id for call in planned.calls] == ["c0", "c2"]
    assert {call_id: result.error_type for call_id, result in planned.refused.items()} == {"c4": "limit"}


def test_u16_a_call_of_nobodys_tool_is_an_unknown_tool_error_that_names_what_there_is() -> None:
    message = calls(("a", "nope", {}))
    (result,) = plan(message, ["a"], TOOLS, Limits(), calls_before=0).refused.values()
    assert (result.error_type, result.name) == ("unknown_tool", "nope")
    assert result.error == "Unknown tool 'nope'; known tools: w__say, w__ask, w__hand."


@pytest.mark.parametrize("values", list(product([False, True], repeat=3)))
async def test_u12_u13_whatever_stands_beside_a_tool_that_takes_control_each_call_is_answered(
    values: tuple[bool, ...],
) -> None:
    """A copy of it, an unknown call, a call of another tool: in every mixture, through the whole loop."""
    with_copy, with_unknown, with_other = values
    hand = ("w__hand_over", {"topic": "Oslo"})
    batch = [("h", *hand)]
    batch += [("i", *hand)] if with_copy else []
    batch += [("u", "nope", {})] if with_unknown else []
    batch += [("e", "w__echo", {"text": "x"})] if with_other else []
    async with world_of(with_hand_over=True) as world:
        world.state = State(messages=[user("hi")])
        clashes = with_unknown or with_other
        runner = world.runner(calls(*batch), *([calls(("z", *hand))] if clashes else []))
        await runner.until_done()
    types = [entry["error_type"] for entry in world.state.tool_results]
    assert types == (["conflict"] * len(batch) + [None] if clashes else [None] * len(batch))
    assert world.state.status == "completed"
    assert_valid(world.state.messages)
