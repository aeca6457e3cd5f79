"""Plans that a model wrote."""

import json
from typing import Any

import pytest

from engines.plans.validator import InvalidPlan, ValidPlan, tool_call_validator
from engines.tool import Tool, ToolCall

TEXT, NUMBER = {"type": "string"}, {"type": "integer", "minimum": 1}
FIND = Tool(
    "find",
    "shop",
    parameters={"type": "object", "properties": {"name": TEXT, "limit": NUMBER}, "required": ["name"]},
    output_parameters={"type": "object", "properties": {"order": {"type": "object", "properties": {"id": TEXT}}}},
)
CANCEL = Tool(
    "cancel",
    "shop",
    parameters={
        "type": "object",
        "properties": {
            "order_id": {"type": "string", "minLength": 10},
            "count": NUMBER,
            "how": {"enum": ["now", "later"], "type": "string"},
            "notes": {"type": "array", "items": TEXT},
            "to": {"anyOf": [{"type": "object", "properties": {"city": NUMBER}}, {"type": "null"}]},
        },
        "required": ["order_id"],
    },
)
TOOLS = [FIND, CANCEL, Tool("find", "other")]


def problems(plan: Any, **more: Any) -> tuple[str, ...]:
    verdict = tool_call_validator(plan, TOOLS, **more)
    assert isinstance(verdict, InvalidPlan)
    return verdict.problems


def call(tool: str, call_id: str | None = None, /, **arguments: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"name": tool, "arguments": arguments}
    return made if call_id is None else {**made, "id": call_id}


GOOD = [call("shop::find", "$1", name="Ann"), call("shop::cancel", "$2", order_id="$1.order.id", how="now")]


@pytest.mark.parametrize("plan", [GOOD, tuple(GOOD), json.dumps(GOOD), {"plan": GOOD}, json.dumps({"plan": GOOD})])
def test_d85_a_good_plan_becomes_calls(plan: Any) -> None:
    assert tool_call_validator(plan, TOOLS) == ValidPlan(
        (
            ToolCall("find", "shop", {"name": "Ann"}, "$1"),
            ToolCall("cancel", "shop", {"order_id": "$1.order.id", "how": "now"}, "$2"),
        )
    )


def test_d85_names_may_be_bare_where_they_are_clear_and_ids_left_out() -> None:
    plan = [
        call("cancel", order_id="0123456789"),
        {**call("find", name="x"), "namespace": "shop"},
    ]
    verdict = tool_call_validator(plan, TOOLS)
    assert isinstance(verdict, ValidPlan)
    assert [(each.qualified_name, each.call_id) for each in verdict.calls] == [
        ("shop::cancel", "$1"),
        ("shop::find", "$2"),
    ]


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        ("[{", "plan: not JSON"),
        pytest.param("[" * 100_000, "plan: not JSON", id="deep"),
        ('"find"', "plan: must be a list of calls, got str"),
        ({"calls": []}, "plan: must be a list of calls, got dict"),
        ([], "plan: holds no call"),
        (["find"], "plan[0]: a call is an object, got str"),
        ([call("shop::find", "a", name="x"), call("shop::find", "b", name="x")], "plan[1]: the same call as plan[0]"),
        (
            [call("shop::find", "$1", name="x"), call("shop::find", "$1", name="y")],
            "plan[1].id: '$1' is the id of plan[0] too",
        ),
        ([call("shop::fnd", name="x")], "plan[0].name: no tool 'shop::fnd'; did you mean 'shop::find'?"),
        ([call("find", name="x")], "plan[0].name: 'find' is the name of several tools (shop::find, other::find); say"),
        ([{**call("shop::find", name="x"), "why": "so"}], "plan[0]: unknown key why"),
        ([{"arguments": {}}], "plan[0]: name is missing"),
        ([{"name": "shop::find"}], "plan[0]: arguments is missing"),
        ([{"name": "shop::find", "arguments": "{}"}], "plan[0].arguments: must be an object, got str"),
        ([{"name": 3, "arguments": {}}], "plan[0].name: must be text, got int"),
        ([{**call("shop::find", name="x"), "id": 1}], "plan[0].id: must be text, got 1"),
        ([call("shop::find", limit=3)], 'plan[0].arguments: "name" is a required property'),
        ([call("shop::find", name="x", limit="3")], "plan[0].arguments.limit: "),
        ([call("shop::find", name="x", limits=3)], "plan[0].arguments: 'shop::find' has no argument 'limits'; did you"),
        (
            [call("shop::cancel", order_id="$1.order.id")],
            "plan[0].arguments.order_id: '$1.order.id' names no call before",
        ),
        (
            [call("shop::cancel", order_id="$2.order.id"), call("shop::find", name="x")],
            "plan[0].arguments.order_id: '$2.order.id' names no call before this one",
        ),
        (
            [call("shop::find", name="x"), call("shop::cancel", order_id="$1.order.key")],
            "plan[1].arguments.order_id: '$1.order.key': the result of 'shop::find' has no 'key'",
        ),
        (
            [call("shop::find", name="x"), call("shop::cancel", order_id="0123456789", count="$1.order.id")],
            "plan[1].arguments.count: '$1.order.id' is 'string', and 'integer' is needed",
        ),
    ],
)
def test_d85_a_bad_plan_is_refused_with_place_and_cause(plan: Any, problem: str) -> None:
    assert any(found.startswith(problem) for found in problems(plan)), problems(plan)


def test_d85_every_problem_is_told() -> None:
    assert len(problems([call("shop::find"), call("shop::find", name=3), call("shop::find", name="a", limit=0)])) == 3


def test_d85_a_reference_is_not_held_against_the_schema_for_its_text() -> None:
    plan = [
        call("shop::find", "first", name="Ann"),
        call("shop::cancel", order_id="$first.order.id", count="$first.total", to={"city": "$first.city"}),
    ]
    assert problems(plan) == (
        "plan[1].arguments.count: '$first.total': the result of 'shop::find' has no 'total'; known: order",
        "plan[1].arguments.to.city: '$first.city': the result of 'shop::find' has no 'city'; known: order",
    )
    plan[1]["arguments"]["count"] = 2
    plan[1]["arguments"]["to"]["city"] = "$first.order.id"
    assert isinstance(tool_call_validator(plan, TOOLS), ValidPlan)


@pytest.mark.parametrize("amount", ["$5", "$12.50"])
def test_d85_an_amount_of_money_is_no_reference(amount: str) -> None:
    assert isinstance(tool_call_validator([call("shop::find", name=amount)], TOOLS), ValidPlan)


@pytest.mark.parametrize(
    ("arguments", "made_up"),
    [
        ({"order_id": "AB-12345678"}, []),
        ({"order_id": "ab-12345678", "count": 3}, []),
        ({"order_id": "AB-99999999"}, ["order_id: 'AB-99999999'"]),
        ({"order_id": "AB-12345678", "count": 4}, ["count: 4"]),
        ({"order_id": "AB-12345678", "how": "later"}, []),
        ({"order_id": "AB-12345678", "notes": ["parcels to Oslo", "by air"]}, ["notes[1]: 'by air'"]),
        ({"order_id": "AB-12345678", "to": None}, []),
    ],
)
def test_d85_values_that_nobody_said_are_made_up(arguments: dict[str, Any], made_up: list[str]) -> None:
    said = "Please cancel the 3 parcels of order AB-12345678 to Oslo."
    plan = [call("shop::cancel", **arguments)]
    verdict = tool_call_validator(plan, TOOLS, grounding=said)
    found = verdict.problems if isinstance(verdict, InvalidPlan) else ()
    assert list(found) == [f"plan[0].arguments.{each} is nowhere in what was said" for each in made_up]
    assert isinstance(tool_call_validator(plan, TOOLS), ValidPlan)


def test_d85_a_reference_is_never_made_up() -> None:
    assert isinstance(tool_call_validator(GOOD, TOOLS, grounding="Cancel what Ann ordered"), ValidPlan)
