"""Tools from Python modules: which functions are tools, and that they answer through a local engine."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engines.configuration import ToolsConfiguration
from engines.engine import ToolEngine
from engines.errors import ConfigurationInvalid
from engines.loading import load_registry, pinned
from engines.registry import ToolRegistry
from engines.tool import ErrorType, ToolCall
from engines.wiring import build_engine
from tests.unit.engines.stage import no_speak

DESK = "tests.unit.engines.desk_tools"
MARKED = "tests.unit.engines.marked_tools"


def block(module: str = DESK, **entry: Any) -> dict[str, Any]:
    return {
        "registry": [{"type": "python", "module": module, "namespace": "desk", **entry}],
        "engines": {"code": {"type": "local", "module": module}},
    }


def load(written: dict[str, Any]) -> ToolRegistry:
    return load_registry(ToolsConfiguration.model_validate(written), folder=Path(), environment={})


def build(written: dict[str, Any]) -> ToolEngine:
    configuration = ToolsConfiguration.model_validate(written)
    return build_engine(configuration, load(written), speak_for=no_speak)


async def answers(engine: ToolEngine, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    await engine.setup("s")
    results = await engine.execute("s", [ToolCall(name, "desk", arguments) for name, arguments in calls])
    await engine.teardown("s")
    await engine.close()
    return [result.error or result.result for result in results]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the file of a module `made_tools`, importable as long as the test runs."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "made_tools.py"
    sys.modules.pop("made_tools", None)


def test_without_marks_the_public_functions_of_the_module_are_tools() -> None:
    assert load(block()).tool_names() == ["desk::anything", "desk::measure", "desk::note", "desk::open_desk"]


def test_functions_and_exclude_choose() -> None:
    assert load(block(functions=["note"])).tool_names() == ["desk::note"]
    assert load(block(exclude=["open_desk", "anything"])).tool_names() == ["desk::measure", "desk::note"]


def test_e1_marked_functions_are_the_tools_of_their_module() -> None:
    registry = load(block(MARKED))
    assert registry.tool_names() == ["desk::get-weather", "desk::plain"]
    weather = registry.get("desk::get-weather")
    assert weather.description == "The weather, in other words."
    assert weather.parameters["required"] == ["city"]
    assert weather.metadata == {
        "read_only": True,
        "strict": True,
        "input_examples": [{"city": "Rome"}],
        "source": "python",
    }


async def test_e1_a_registered_function_is_called_by_its_name() -> None:
    assert await answers(build(block(MARKED)), ("plain", {}), ("get-weather", {"city": "Rome"})) == [
        "hello",
        "sunny in Rome",
    ]


def test_all_names_the_tools_of_a_module_without_marks(module: Path) -> None:
    module.write_text("from shlex import quote\n__all__ = ['quote', 'b', 'C']\nC = 3\ndef a(): ...\ndef b(): ...\n")
    assert load(block("made_tools")).tool_names() == ["desk::b", "desk::quote"]
    build(block("made_tools"))


async def test_arguments_become_what_the_annotations_ask_for() -> None:
    arguments = {"city": "Rome", "day": "2024-05-01", "place": {"lat": 1, "lon": 2}, "tags": [{"name": "x"}]}
    assert await answers(build(block()), ("measure", arguments), ("measure", {"city": "R", "day": "2024-05-02"})) == [
        {"degrees": 5.0, "unit": "celsius"},
        {"degrees": 3.0, "unit": "celsius"},
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"city": "Rome", "day": "tomorrow"}, "invalid arguments: day: Input should be a valid date"),
        ({"city": "Rome", "day": "2024-05-01", "unit": "kelvin"}, "invalid arguments: unit: "),
        ({"city": "Rome", "day": "2024-05-01", "place": {"lat": 91, "lon": 0}}, "invalid arguments: place: "),
        ({"city": "Rome", "day": "2024-05-01", "tags": [{"nmae": "x"}]}, "invalid arguments: tags[0]: "),
        ({"city": "Rome", "day": "2024-05-01", "extra": 1}, "invalid arguments: Additional properties are not allowed"),
        ({"city": 7, "day": "2024-05-01"}, "invalid arguments: city: 7 is not of type"),
    ],
)
async def test_arguments_that_cannot_are_told_to_the_model(arguments: dict[str, Any], told: str) -> None:
    engine = build(block())
    await engine.setup("s")
    (result,) = await engine.execute("s", [ToolCall("measure", "desk", arguments)])
    assert result.error_type is ErrorType.validation
    assert result.error is not None
    assert result.error.startswith(told)
    await engine.close()


async def test_e2_the_context_is_the_engines_and_no_argument() -> None:
    assert "context" not in load(block()).get("desk::note").parameters["properties"]
    assert await answers(build(block()), ("note", {"text": "x"}), ("note", {"text": "y", "kind": "task"})) == [
        {"kind": "idea", "notes": ["x"]},
        {"kind": "task", "notes": ["x", "y"]},
    ]


async def test_a_function_with_others_takes_any_argument() -> None:
    assert load(block()).get("desk::anything").parameters["additionalProperties"] is True
    assert await answers(build(block()), ("anything", {"first": 1, "b": 2})) == [{"first": 1, "b": 2}]


def test_a_pinned_python_tool_needs_no_loader() -> None:
    configuration = ToolsConfiguration.model_validate(block())
    registry = load(block())
    stored = pinned(configuration, registry)
    assert {entry["type"] for entry in stored["registry"]} == {"inline"}
    assert load(stored) == registry


@pytest.mark.parametrize(
    ("entry", "at", "cause"),
    [
        ({"module": "no_such_module_at_all"}, "module", "module 'no_such_module_at_all' cannot be imported"),
        ({"functions": ["nte"]}, "functions", "has no function 'nte' for the registry; did you mean 'note'"),
        ({"exclude": ["nte"]}, "exclude", "offers no function 'nte'; did you mean 'note'"),
        ({"module": "os:system"}, "module", "module 'os:system' cannot be imported"),
        ({"modul": "x"}, "modul", "unknown key 'modul'; did you mean 'module'"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(entry: dict[str, Any], at: str, cause: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=cause) as caught:
        load(block(**entry))
    assert caught.value.at[:3] == ("registry", 0, at)


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("def f(a, /): ...", r"function made_tools\.f: its parameter 'a' cannot be given by name"),
        ("def f(*a): ...", "its parameter 'a' cannot be given by name"),
        ("import socket\ndef f(a: socket.socket): ...", "annotate it with types that have a JSON form"),
        ("def f(a: 'Nowhere'): ...", "name 'Nowhere' is not defined"),
        ("from engines.local.context import Context\ndef f(where: Context): ...", "is a Context; name it `context`"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_named(module: Path, code: str, cause: str) -> None:
    module.write_text(code + "\n")
    with pytest.raises(ConfigurationInvalid, match=cause):
        load(block("made_tools"))


def test_u2_of_an_optional_module_the_functions_that_can_be_tools_load(module: Path) -> None:
    module.write_text("def f(*a): ...\ndef g(a: int) -> None:\n    'Goes.'\n")
    assert load(block("made_tools", optional=True)).tool_names() == ["desk::g"]


@pytest.mark.parametrize("name", ["system", "_private", "__init__", "Context", "BaseModel", "os:system", "os.system"])
def test_sec_s23_a_definition_reaches_no_function_that_its_module_does_not_offer(name: str) -> None:
    written = block() | {"registry": [{"type": "inline", "namespace": "desk", "tools": [{"name": name}]}]}
    with pytest.raises(ConfigurationInvalid, match=r"is not the module's own public function|has no function"):
        build(written)


def test_sec_s23_the_operators_recipe_may_name_any_function() -> None:
    written = block() | {"registry": [{"type": "inline", "namespace": "desk", "tools": [{"name": "hidden"}]}]}
    written["engines"] = {"code": {"type": "local", "module": DESK, "functions": {"hidden": "_private"}}}
    build(written)
