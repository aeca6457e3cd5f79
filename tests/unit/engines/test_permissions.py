"""Permissions: which calls reach an engine, which wait for somebody outside, which are told that they may not."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from engines.configuration import PermissionSettings, ToolsConfiguration
from engines.engine import ToolEngine
from engines.errors import ConfigurationInvalid
from engines.loading import load_registry
from engines.permissions import Permissions
from engines.registry import ToolRegistry
from engines.tool import ErrorType, Tool, ToolCall
from engines.toolset import Toolset
from engines.wiring import build_engine
from tests.support import counting_tools
from tests.unit.engines.stage import no_speak

PATH = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "mode": {"type": "string", "default": "read"}},
    "required": ["path"],
    "additionalProperties": False,
}
WRITES = {"properties": {"mode": {"const": "write"}}, "required": ["mode"]}
READS = {"properties": {"mode": {"const": "read"}}, "required": ["mode"]}
IN_ETC = {"properties": {"path": {"pattern": "^/etc"}}, "required": ["path"]}
REGISTRY = ToolRegistry(
    [
        Toolset("files", None, (Tool("open", "files", parameters=PATH), Tool("list", "files"))),
        Toolset("hr", None, (Tool("who", "hr"), Tool("fire", "hr", metadata={"confirm": True}))),
        Toolset("gone", None, (), disabled=frozenset("*")),
    ]
)


def permissions(**written: Any) -> Permissions:
    return Permissions.of(PermissionSettings.model_validate(written), REGISTRY)


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall.parse(name, arguments)


def allowed(rules: Permissions, *calls: ToolCall) -> list[bool]:
    return [rules.refusal(each) is None for each in calls]


CALLS = [call("files::open", path="/etc/x"), call("files::list"), call("hr::who"), call("hr::fire")]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({}, [True, True, True, True]),
        ({"deny": ["files::open"]}, [False, True, True, True]),
        ({"deny": ["hr::*"]}, [True, True, False, False]),
        ({"deny": ["*"]}, [False, False, False, False]),
        ({"allow": ["files::*"]}, [True, True, False, False]),
        ({"allow": []}, [False, False, False, False]),
        ({"allow": ["*"], "deny": ["hr::fire"]}, [True, True, True, False]),
        ({"allow": ["hr::fire"], "deny": ["hr::*"]}, [False, False, False, False]),
        ({"allow": ["who"]}, [False, False, True, False]),
        ({"deny": ["gone::*", "gone::tool"]}, [True, True, True, True]),
        ({"deny": [{"tool": "files::open", "arguments": IN_ETC}]}, [False, True, True, True]),
        ({"allow": [{"tool": "*", "arguments": {"required": ["path"]}}]}, [True, False, False, False]),
    ],
)
def test_e12_deny_wins_over_allow_and_what_an_allow_list_leaves_out_is_denied(
    written: dict[str, Any], expected: list[bool]
) -> None:
    assert allowed(permissions(**written), *CALLS) == expected


def test_e12_a_refusal_says_whether_other_arguments_might_do() -> None:
    rules = permissions(deny=["hr::who", {"tool": "files::open", "arguments": IN_ETC}])
    assert rules.refusal(call("hr::who")) == "Permission denied: hr::who may not be called."
    assert rules.refusal(CALLS[0]) == "Permission denied: files::open may not be called with these arguments."


def test_sec_s4_a_schema_default_does_not_slip_past_a_rule() -> None:
    default, written = call("files::open", path="/x"), call("files::open", path="/x", mode="write")
    assert allowed(permissions(deny=[{"tool": "files::open", "arguments": READS}]), default, written) == [False, True]
    assert allowed(permissions(allow=[{"tool": "files::open", "arguments": READS}]), default, written) == [True, False]


def test_a_rule_may_be_about_what_was_left_out() -> None:
    unsaid = {"tool": "files::open", "arguments": {"not": {"required": ["mode"]}}}
    calls = [call("files::open", path="/x"), call("files::open", path="/x", mode="read")]
    assert allowed(permissions(deny=[unsaid]), *calls) == [False, True]
    assert [permissions(confirm=[unsaid]).wants_confirmation(each) for each in calls] == [True, False]


def test_sec_s4_wrong_arguments_are_not_told_to_be_forbidden_and_never_allowed_either() -> None:
    wrong = call("files::open", path=7, mode="write")
    assert permissions(allow=[{"tool": "files::open", "arguments": READS}]).refusal(wrong) is None
    assert permissions(allow=["hr::who"]).refusal(wrong) is not None
    assert permissions(deny=[{"tool": "files::open", "arguments": WRITES}]).refusal(wrong) is not None


def test_sec_s4_what_no_validator_can_read_is_denied() -> None:
    odd = call("files::open", path="\ud800")
    assert permissions(deny=[{"tool": "files::open", "arguments": IN_ETC}]).refusal(odd) is not None


def test_an_unknown_tool_is_not_a_matter_of_permission() -> None:
    assert permissions(allow=["hr::who"]).refusal(call("hr::nobody")) is None


def test_d70_the_rules_hold_for_every_overload() -> None:
    by_id = {"type": "object", "properties": {"id": {"type": "integer", "default": 1}}, "required": ["id"]}
    by_name = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    overloads = (Tool("get", "w", parameters=by_name), Tool("get", "w", parameters=by_id))
    registry = ToolRegistry([Toolset("w", None, overloads)])
    first = {"tool": "w::get", "arguments": {"properties": {"id": {"const": 1}}, "required": ["id"]}}
    rules = Permissions.of(PermissionSettings.model_validate({"deny": [first]}), registry)
    assert allowed(rules, call("w::get", id=1), call("w::get", id=2), ToolCall("get", "w", {"name": "x"})) == [
        False,
        True,
        True,
    ]


def test_confirm_is_for_calls_that_are_allowed() -> None:
    rules = permissions(
        deny=["files::list"], confirm=["files::list", {"tool": "files::open", "arguments": WRITES}, "hr::who"]
    )
    wanting = [rules.wants_confirmation(each) for each in CALLS]
    assert wanting == [False, False, True, True]
    assert rules.wants_confirmation(call("files::open", path="/x", mode="write"))
    assert not rules.wants_confirmation(call("files::nothing"))


def test_a_tool_may_ask_for_confirmation_itself() -> None:
    assert permissions().wants_confirmation(call("hr::fire"))
    assert not permissions(deny=["hr::fire"]).wants_confirmation(call("hr::fire"))


@pytest.mark.parametrize(
    ("written", "at", "cause"),
    [
        ({"deny": ["hr::*", "hr::frie"]}, ("permissions", "deny", 1), "no tool 'hr::frie'; did you mean 'hr::fire'"),
        ({"allow": ["hrr::*"]}, ("permissions", "allow", 0), "no tool 'hrr::"),
        ({"confirm": [{"tool": "nope"}]}, ("permissions", "confirm", 0), "no tool 'nope'"),
        (
            {"deny": [{"tool": "hr::who", "arguments": {"type": "objekt"}}]},
            ("permissions", "deny", 0, "arguments"),
            "arguments: not a usable JSON Schema",
        ),
        (
            {"deny": [{"tool": "hr::who", "arguments": {"$ref": "http://elsewhere/x"}}]},
            ("permissions", "deny", 0, "arguments"),
            "arguments: not a usable JSON Schema",
        ),
    ],
)
def test_a_rule_that_cannot_be_used_is_blamed_at_its_place(
    written: dict[str, Any], at: tuple[str | int, ...], cause: str
) -> None:
    with pytest.raises(ConfigurationInvalid, match=cause) as caught:
        permissions(**written)
    assert caught.value.at == at


# In the engine of a worker


def built(**written: Any) -> ToolEngine:
    faults = written.pop("faults", [])
    configuration = counting_tools.configuration(**written.pop("namespace", {}))
    (settings,) = configuration.engines.values()
    engines = {"here": {**settings, "error_categories": faults}}
    permissions = PermissionSettings.model_validate(written)
    configuration = configuration.model_copy(update={"permissions": permissions, "engines": engines})
    registry = load_registry(configuration, folder=Path(), environment={})
    return build_engine(configuration, registry, speak_for=no_speak)


@pytest.fixture
async def engine() -> AsyncIterator[ToolEngine]:
    counting_tools.RUNS.clear()
    engine = built(deny=["w::echo"], namespace={"defaults": {"on_error": "raise"}})
    await engine.setup("s")
    yield engine
    await engine.teardown("s")
    await engine.close()


BATCH = [
    ToolCall("add", "w", {"a": 1, "b": 2}, "1"),
    ToolCall("echo", "w", {"text": "x"}, "2"),
    ToolCall("echo", "w", {"text": 7}, "3"),
    ToolCall("add", "w", {"a": 3, "b": 4}, "4"),
]


@pytest.mark.parametrize("method", ["execute", "simulate"])
async def test_e12_a_denied_call_is_an_error_result_and_reaches_no_tool(engine: ToolEngine, method: str) -> None:
    results = await getattr(engine, method)("s", BATCH)
    assert [(result.call_id, result.result, result.error_type) for result in results] == [
        ("1", 3, None),
        ("2", None, ErrorType.permission),
        ("3", None, ErrorType.permission),
        ("4", 7, None),
    ]
    assert [name for name, _ in counting_tools.RUNS] == ["add", "add"]


async def test_e13_a_denied_call_aborts_no_turn_and_is_in_the_history(engine: ToolEngine) -> None:
    await engine.execute("s", BATCH)
    state = await engine.get_session_state("s")
    assert state is not None
    assert [entry["call"]["id"] for entry in state["history"]] == ["1", "2", "3", "4"]
    assert state["history"][1]["result"]["metadata"] == {"denied": True}


async def test_d36_a_denied_call_has_no_number_so_a_continued_session_draws_the_same_faults() -> None:
    drawn = []
    for is_continued in (False, True):
        engine = built(deny=["w::echo"], faults=[{"type": "network_error", "probability": 0.5}])
        await engine.setup("s", seed=3)
        results = [*await engine.execute("s", BATCH[:2] * 10)]
        if is_continued:
            state = await engine.get_session_state("s")
            await engine.close()
            engine = built(deny=["w::echo"], faults=[{"type": "network_error", "probability": 0.5}])
            await engine.setup("s", seed=3, initial_state=state)
        results += await engine.execute("s", BATCH[:2] * 10)
        drawn.append([result.metadata.get("injected") for result in results if result.error_type != "permission"])
        await engine.close()
    assert drawn[0] == drawn[1]
    assert set(drawn[0]) == {None, "network_error"}


def test_permissions_are_checked_when_the_engine_is_built() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"tools\.permissions\.allow\[0\]: no tool 'w::ad'"):
        built(allow=["w::ad"])


def test_the_configuration_takes_patterns_and_rules() -> None:
    block = {"permissions": {"deny": ["a::b", {"tool": "a::*", "arguments": {"required": ["x"]}}]}}
    deny = ToolsConfiguration.model_validate(block).permissions.deny
    assert [(rule.tool, rule.arguments) for rule in deny] == [("a::b", None), ("a::*", {"required": ["x"]})]
