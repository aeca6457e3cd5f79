"""Tools that somebody outside answers: how they are declared, and that no engine is built or asked for them."""

from typing import Any

import pytest

from engines.configuration import ToolsConfiguration
from engines.engine import ToolEngine
from engines.errors import ConfigurationInvalid
from engines.loading import load_registry, pinned
from engines.permissions import Permissions
from engines.registry import ToolRegistry
from engines.tool import ErrorType, ToolCall
from engines.wiring import build_engine
from tests.support import counting_tools


def tool(name: str, **metadata: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}}
    return {"name": name, "parameters": parameters, "metadata": metadata}


def block(**changes: Any) -> dict[str, Any]:
    return {
        "registry": [
            {"type": "inline", "namespace": "people", "engine": "external", "tools": [tool("ask")]},
            {"type": "inline", "namespace": "w", "engine": "here", "tools": [tool("echo")]},
        ],
        "engines": {"here": {"type": "local", "module": "tests.support.counting_tools"}},
        **changes,
    }


def no_model(_: dict[str, Any]) -> Any:
    raise AssertionError("no tool here needs a model")


def built(tools: dict[str, Any]) -> tuple[ToolRegistry, ToolEngine, Permissions]:
    configuration = ToolsConfiguration.model_validate(tools)
    registry = load_registry(configuration, folder=None, environment={})  # type: ignore[arg-type]  # nothing is read
    engine = build_engine(configuration, registry, speak_for=no_model)
    return registry, engine, Permissions.of(configuration.permissions, registry)


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall.parse(name, arguments, "c")


def test_s1_an_external_namespace_needs_no_engine_and_all_its_calls_wait() -> None:
    _, _, permissions = built(block())
    assert permissions.wants_confirmation(call("people::ask", text="x"))
    assert not permissions.wants_confirmation(call("w::echo", text="x"))


def test_s1_a_recipe_may_have_nothing_but_external_tools() -> None:
    tools = block(engines={})
    tools["registry"] = tools["registry"][:1]
    _, _, permissions = built(tools)
    assert permissions.wants_confirmation(call("people::ask"))


async def test_s1_no_engine_runs_a_call_that_is_for_somebody_outside() -> None:
    _, engine, _ = built(block())
    counting_tools.RUNS.clear()
    await engine.setup("s")
    (result,) = await engine.execute("s", [call("people::ask", text="x")])
    await engine.teardown("s")
    assert result.error_type is ErrorType.unknown_tool
    assert not counting_tools.RUNS


@pytest.mark.parametrize(
    "changes",
    [
        {"namespaces": {"w": {"tools": {"echo": {"external": True}}}}},
        {"permissions": {"confirm": [{"tool": "w::echo"}]}},
        {"permissions": {"confirm": [{"tool": "*"}]}},
    ],
    ids=["the tool's settings", "permissions", "permissions for all"],
)
def test_s1_a_single_tool_of_an_engine_may_be_external(changes: dict[str, Any]) -> None:
    _, _, permissions = built(block(**changes))
    assert permissions.wants_confirmation(call("w::echo", text="x"))


def test_s1_a_definition_may_say_so_itself() -> None:
    tools = block()
    tools["registry"][1]["tools"] = [tool("echo", external=True)]
    _, _, permissions = built(tools)
    assert permissions.wants_confirmation(call("w::echo"))


def test_s1_only_the_calls_whose_arguments_a_rule_names_wait() -> None:
    schema = {"type": "object", "properties": {"text": {"const": "secret"}}, "required": ["text"]}
    _, _, permissions = built(block(permissions={"confirm": [{"tool": "w::echo", "arguments": schema}]}))
    assert permissions.wants_confirmation(call("w::echo", text="secret"))
    assert not permissions.wants_confirmation(call("w::echo", text="plain"))


def test_s1_what_is_denied_nobody_is_asked_about() -> None:
    _, _, permissions = built(block(permissions={"deny": [{"tool": "people::ask"}]}))
    assert not permissions.wants_confirmation(call("people::ask"))
    assert permissions.refusal(call("people::ask"))


def test_an_engine_cannot_be_called_external() -> None:
    with pytest.raises(ConfigurationInvalid, match="rename this one") as refused:
        built(block(engines={"here": block()["engines"]["here"], "external": block()["engines"]["here"]}))
    assert refused.value.at == ("engines", "external")


def test_what_is_pinned_still_says_that_it_is_external() -> None:
    configuration = ToolsConfiguration.model_validate(block())
    registry = load_registry(configuration, folder=None, environment={})  # type: ignore[arg-type]  # nothing is read
    stored = pinned(configuration, registry)
    _, _, permissions = built(stored)
    assert permissions.wants_confirmation(call("people::ask"))
