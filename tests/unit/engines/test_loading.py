"""From the tools block to the registry, and pinned."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from engines.configuration import ToolsConfiguration
from engines.errors import ConfigurationInvalid, DuplicateTool, UnknownEngine
from engines.loading import load_registry, pinned
from engines.registry import ToolRegistry
from engines.tool import Tool
from engines.toolset import ToolDefaults

# The block that DiGiT documents, as it stands there.
LIVE_BLOCK: dict[str, Any] = {
    "registry": [
        {"type": "file", "path": "weather_tools.yaml", "namespace": "weather_api", "engine": "lm_sim"},
        {"type": "mcp", "url": "http://localhost:8080", "namespace": "hr_api", "engine": "mcp_live"},
    ],
    "engines": {
        "lm_sim": {"type": "lm", "lm_config": {"type": "ollama", "model_id_or_path": "granite3.3:8b"}},
        "mcp_live": {"type": "mcp", "url": "http://localhost:8080"},
    },
}


def load(block: Any, folder: Path = Path(), **environment: str) -> ToolRegistry:
    return load_registry(ToolsConfiguration.model_validate(block), folder=folder, environment=environment)


def inline(*tools: Any, **more: Any) -> dict[str, Any]:
    return {"type": "inline", "tools": list(tools), **more}


def test_d40_the_documented_block_is_a_valid_configuration() -> None:
    configuration = ToolsConfiguration.model_validate(LIVE_BLOCK)
    assert [entry["type"] for entry in configuration.registry] == ["file", "mcp"]


def test_d65_a_list_is_the_registry_alone_and_nothing_is_an_empty_block() -> None:
    assert load([inline({"name": "a"})]).tool_names() == ["default::a"]
    assert len(load(None)) == len(load({})) == 0


def test_d72_files_in_the_recipes_folder_with_variables_in_their_path(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "tools.json").write_text('[{"name": "a"}]')
    for path in ("sub/tools.json", "${WHERE}/tools.json", "$WHERE/tools.json", str(tmp_path / "sub/tools.json")):
        block = [{"type": "file", "path": path, "namespace": "w"}]
        assert load(block, tmp_path, WHERE="sub").tool_names() == ["w::a"]


def test_an_unset_variable_in_a_path_is_named() -> None:
    with pytest.raises(ConfigurationInvalid, match="the variable WHER is not set; set it") as caught:
        load([{"type": "file", "path": "${WHER}/x.yaml"}], WHERE="sub")
    assert caught.value.at == ("registry", 0, "path")


def test_a_bad_file_is_blamed_at_its_entry(tmp_path: Path) -> None:
    (tmp_path / "tools.yaml").write_text("- name: a\n  parameters: {type: object, properties: {x: {type: float}}}\n")
    (tmp_path / "other.yaml").write_text("- {nme: a}\n")
    with pytest.raises(
        ConfigurationInvalid, match=r"tools\.registry\[0\]: tool 'default::a': parameters: not a usable"
    ):
        load([{"type": "file", "path": "tools.yaml"}], tmp_path)
    with pytest.raises(ConfigurationInvalid, match=r"tools\.registry\[0\]\.path: .*other\.yaml: a tool needs a name"):
        load([{"type": "file", "path": "other.yaml"}], tmp_path)


def test_d74_inline_tools_are_a_list() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"tools\.registry\[0\]\.tools: Input should be a valid list"):
        load([{"type": "inline", "tools": {"name": "a"}}])
    with pytest.raises(ConfigurationInvalid, match=r"tools\.registry\[0\]\.tools\[1\]: a tool needs a name"):
        load([inline({"name": "a"}, {})])


@pytest.mark.parametrize(
    ("block", "at", "cause"),
    [
        ([{"type": "flie"}], ("registry", 0, "type"), "no tools of type 'flie'; did you mean 'file'"),
        ([{}], ("registry", 0, "type"), "the type is missing; known: a2a, ensemble, file, inline"),
        ([{"type": "file"}], ("registry", 0, "path"), "this key is needed"),
        ([inline(namspace="w")], ("registry", 0, "namspace"), "unknown key 'namspace'; did you mean 'namespace'"),
        ([inline(engine="sim")], ("registry", 0, "engine"), "no engine 'sim'; there are none"),
        ([inline({"name": "a"}, {"name": "a"})], ("registry", 0), "tool 'default::a' is defined twice"),
        ({"enrichments": [{}]}, ("enrichments", 0, "type"), "the type is missing; known: dataflow, embeddings"),
        ({"namespaces": {"w": {}}}, ("namespaces", "w"), "no tools in namespace 'w'"),
        (
            {"registry": [inline({"name": "a"})], "sample": {"type": "tc/random", "k": 2}},
            ("sample", "k"),
            "2 tools asked",
        ),
        (
            {"registry": [inline({"name": "a"})], "sample": {"type": "tc/random", "k": 1, "namespace": "x"}},
            ("sample", "namespace"),
            "no tools in namespace 'x'",
        ),
        (
            [inline({"name": "a", "metadata": {"defaults": {"timeout": 1}}})],
            ("registry", 0),
            "tool 'default::a': metadata.defaults",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(block: Any, at: tuple[Any, ...], cause: str) -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        load(block)
    assert caught.value.at == at
    assert caught.value.message.startswith(cause)


def test_unknown_keys_of_the_block_are_refused() -> None:
    blocks: list[Any] = [
        {"registery": []},
        {"namespaces": {"w": {"statefull": True}}},
        {"sample": {"type": "tc/sparse", "k": 1}},
    ]
    for block in blocks:
        with pytest.raises(ValidationError):
            ToolsConfiguration.model_validate(block)


def test_d66_one_namespace_on_two_engines_is_refused_two_on_one_are_fine() -> None:
    engines = {"one": {"type": "lm"}, "two": {"type": "lm"}}
    fine = [inline({"name": "a"}, namespace=name, engine="one") for name in ("x", "y")]
    assert [toolset.engine for toolset in load({"registry": fine, "engines": engines}).toolsets.values()] == [
        "one",
        "one",
    ]
    clash = [inline({"name": name}, namespace="x", engine=engine) for name, engine in (("a", "one"), ("b", "two"))]
    with pytest.raises(ConfigurationInvalid, match="namespace 'x' is already answered by engine 'one'") as caught:
        load({"registry": clash, "engines": engines})
    assert caught.value.at == ("registry", 1, "engine")


def test_d66_an_undefined_engine_is_refused_with_the_nearest() -> None:
    block = {"registry": [inline({"name": "a"}, engine="lm_smi")], "engines": {"lm_sim": {"type": "lm"}}}
    with pytest.raises(UnknownEngine, match=r"tools\.registry\[0\]\.engine: no engine 'lm_smi'; did you mean 'lm_sim'"):
        load(block)


def test_namespace_settings_reach_their_toolset() -> None:
    settings = {"stateful": True, "max_concurrency": 4, "defaults": {"timeout_seconds": 5}}
    registry = load({"registry": [inline({"name": "a"}, namespace="hr")], "namespaces": {"hr": settings}})
    toolset = registry.toolsets["hr"]
    assert (toolset.stateful, toolset.max_concurrency, toolset.defaults) == (True, 4, ToolDefaults(timeout_seconds=5))


tools = st.builds(
    Tool,
    st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8),
    st.sampled_from(["x", "y", "default"]),
    st.text(),
    st.dictionaries(st.text(), st.just({"type": "string"}), max_size=2).map(
        lambda properties: {"type": "object", "properties": properties}
    ),
    st.none() | st.just({"type": "object"}),
    st.dictionaries(st.text().map("x-{}".format), st.integers(), max_size=2),
)


@given(st.lists(tools, max_size=8, unique_by=lambda tool: (tool.qualified_name, tool.fingerprint)))
def test_a_pinned_block_loads_to_the_same_registry(some: list[Tool]) -> None:
    block = {"registry": [inline(*(tool.to_dict() for tool in some), engine="lm")], "engines": {"lm": {"type": "lm"}}}
    configuration = ToolsConfiguration.model_validate(block)
    registry = load(block)
    stored = json.loads(json.dumps(pinned(configuration, registry)))
    assert load(stored) == registry
    assert pinned(ToolsConfiguration.model_validate(stored), load(stored)) == stored


def test_pinning_keeps_the_rest_of_the_block_and_needs_no_file(tmp_path: Path) -> None:
    (tmp_path / "tools.yaml").write_text("x: [{name: a}]\ny: [{name: b}]\n")
    block: dict[str, Any] = {
        "registry": [{"type": "file", "path": "${P}", "engine": "sim"}],
        "engines": {"sim": {"type": "lm", "lm_config": {"type": "ollama", "api_key": "${SECRET}"}}},
        "namespaces": {"x": {"stateful": True}},
        "sample": {"type": "tc/random", "k": 1},
    }
    configuration = ToolsConfiguration.model_validate(block)
    registry = load(block, tmp_path, P="tools.yaml")
    stored = pinned(configuration, registry)
    assert stored["engines"] == block["engines"]
    assert [(entry["namespace"], entry["engine"]) for entry in stored["registry"]] == [("x", "sim"), ("y", "sim")]
    assert load(stored) == registry
    assert ToolsConfiguration.model_validate(stored).sample == configuration.sample


def shared_tools() -> Path | None:
    """Return the file of real-world tools where there is one: PARLEY_SHARED_DATA, or beside the checkout."""
    given_folder = os.environ.get("PARLEY_SHARED_DATA")
    beside = Path(__file__).resolve().parents[3].parent / "shared" / "data"
    folder = (Path(given_folder) if given_folder else beside) / "toolmind"
    return next(iter(sorted(folder.glob("*.yaml"))), None)


@pytest.mark.skipif(shared_tools() is None, reason="the real-world tools are not on this machine")
def test_959_real_world_tools_load() -> None:
    path = shared_tools()
    assert path is not None
    block = {"registry": [{"type": "file", "path": str(path), "namespace": "glaive"}]}
    registry = load(block)
    assert len(registry) == 959
    assert all(tool.parameters["type"] == "object" for tool in registry)
    assert load(pinned(ToolsConfiguration.model_validate(block), registry)) == registry


def test_d75_refresh_runs_the_loaders_again(tmp_path: Path) -> None:
    path = tmp_path / "tools.yaml"
    path.write_text("- {name: a}\n")
    registry = load([{"type": "file", "path": "tools.yaml", "namespace": "x"}], tmp_path)
    path.write_text("- {name: a}\n- {name: b}\n")
    registry.refresh()
    assert registry.tool_names() == ["x::a", "x::b"]


def test_d75_a_refresh_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tools.yaml"
    path.write_text("- {name: a}\n")
    registry = load([{"type": "file", "path": "tools.yaml", "namespace": "x"}], tmp_path)
    path.write_text("- {name: a}\n- {name: a}\n")
    with pytest.raises(DuplicateTool):
        registry.refresh()
    assert registry.tool_names() == ["x::a"]


def test_d75_a_registry_without_loaders_warns_and_stays() -> None:
    registry = ToolRegistry([])
    with pytest.warns(UserWarning, match="nothing to refresh"):
        registry.refresh()
