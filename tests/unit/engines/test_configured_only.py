"""What runs is what the operator's recipe names: no job, tool definition or call can bring code (security rule S23)."""

from pathlib import Path
from typing import Any

import pytest

from engines.configuration import ToolsConfiguration
from engines.errors import ConfigurationInvalid, InvalidTool
from engines.loading import load_registry
from engines.tool import Tool, ToolCall
from engines.wiring import build_engine
from tests.unit.engines.stage import no_speak

HOOKS = ["os:system", "os.system", "__import__('os').system", "builtins:eval", "subprocess:Popen"]
LOCAL = {"type": "local", "module": "tests.unit.engines.desk_tools"}


def build(tools: list[Any], settings: Any = LOCAL, **entry: Any) -> None:
    block = {
        "registry": [{"type": "inline", "namespace": "w", "tools": tools, **entry}],
        "engines": {"code": settings},
    }
    configuration = ToolsConfiguration.model_validate(block)
    registry = load_registry(configuration, folder=Path(), environment={})
    build_engine(configuration, registry, speak_for=no_speak)


@pytest.mark.parametrize("hook", HOOKS)
def test_sec_s23_an_engine_is_one_of_the_table_or_nothing(hook: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="no engines of type"):
        build([{"name": "note"}], {"type": hook})
    with pytest.raises(ConfigurationInvalid, match="no engine "):
        build([{"name": "note"}], engine=hook)


@pytest.mark.parametrize("hook", HOOKS)
def test_sec_s23_a_loader_is_one_of_the_table_or_nothing(hook: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="no tools of type"):
        build([], type=hook)


@pytest.mark.parametrize("hook", HOOKS)
def test_sec_s23_a_module_is_imported_by_its_name_and_a_function_found_in_it(hook: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="cannot be imported"):
        build([{"name": "note"}], {**LOCAL, "module": f"{hook}; x"})
    for key in ("setup", "teardown"):
        with pytest.raises(ConfigurationInvalid, match="has no function"):
            build([{"name": "note"}], {**LOCAL, key: hook})


@pytest.mark.parametrize("key", ["engine", "module", "function", "callable", "setup"])
@pytest.mark.parametrize("hook", HOOKS)
def test_sec_s23_a_definition_names_no_code(key: str, hook: str) -> None:
    with pytest.raises(ConfigurationInvalid, match="unknown key"):
        build([{"name": "note", key: hook}])


@pytest.mark.parametrize("key", ["engine", "module", "python_module", "function", "source"])
def test_sec_s23_a_definitions_metadata_moves_no_engine(key: str) -> None:
    build([{"name": "note", "metadata": {key: "os:system"}}])
    with pytest.raises(ConfigurationInvalid, match=r"not the module's own public function .*'posix'"):
        build([{"name": "system", "metadata": {key: "os:system"}}])


@pytest.mark.parametrize("name", ["__class__", "note.__globals__", "{0.__class__}", "../note", "note\x00", "os.system"])
async def test_sec_s23_a_call_names_a_tool_and_nothing_else(name: str) -> None:
    block = {
        "registry": [{"type": "inline", "namespace": "w", "tools": [{"name": "note"}]}],
        "engines": {"code": LOCAL},
    }
    configuration = ToolsConfiguration.model_validate(block)
    registry = load_registry(configuration, folder=Path(), environment={})
    engine = build_engine(configuration, registry, speak_for=no_speak)
    await engine.setup("s")
    (result,) = await engine.execute("s", [ToolCall(name, "w", {})])
    assert result.error_type == "unknown_tool"
    await engine.close()


def test_sec_s23_a_tool_is_data() -> None:
    with pytest.raises(InvalidTool, match="unknown key 'engine'"):
        Tool.from_dict({"name": "a", "engine": "os:system"})
