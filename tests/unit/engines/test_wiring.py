"""From the tools block to the engine of a worker."""

from pathlib import Path
from typing import Any, get_type_hints

import pytest

from engines import kinds
from engines.configuration import ToolsConfiguration
from engines.engine import ToolEngine
from engines.errors import ConfigurationInvalid, UnknownEngine
from engines.kinds import ENGINE_KINDS
from engines.loading import load_registry
from engines.plain import JSONObject
from engines.registry import ToolRegistry
from engines.speak import Speak
from engines.tool import Tool, ToolCall
from engines.toolset import Toolset
from engines.wiring import build_engine
from tests.unit.engines.stage import ScriptedSpeak, no_speak
from tests.unit.engines.test_loading import LIVE_BLOCK

LM = {"type": "lm", "lm_config": {"type": "ollama", "model_id_or_path": "granite3.3:8b"}}


def entry(namespace: str, engine: str | None = None) -> JSONObject:
    named = {} if engine is None else {"engine": engine}
    return {"type": "inline", "namespace": namespace, "tools": [{"name": "ask"}], **named}


def speak_for(lm_config: JSONObject) -> Speak:
    return ScriptedSpeak(lambda _name, _arguments: {"model": lm_config["model_id_or_path"]})


def build(registry: list[JSONObject], engines: JSONObject, **more: Any) -> ToolEngine:
    configuration = ToolsConfiguration.model_validate({"registry": registry, "engines": engines})
    loaded = load_registry(configuration, folder=Path(), environment={})
    return build_engine(configuration, loaded, **{"speak_for": speak_for, **more})


async def asked(engine: ToolEngine, *namespaces: str) -> list[Any]:
    await engine.setup("s")
    results = await engine.execute("s", [ToolCall("ask", namespace, {}) for namespace in namespaces])
    return [result.result for result in results]


async def test_each_namespace_is_answered_by_its_engine() -> None:
    other = {**LM, "lm_config": {"type": "ollama", "model_id_or_path": "qwen3"}}
    engine = build([entry("x", "one"), entry("y", "two")], {"one": LM, "two": other})
    assert await asked(engine, "x", "y") == [{"model": "granite3.3:8b"}, {"model": "qwen3"}]


async def test_d31_an_lm_engine_knows_the_tools_of_the_others() -> None:
    speaks: list[ScriptedSpeak] = []

    def kept(lm_config: JSONObject) -> Speak:
        speaks.append(ScriptedSpeak(lambda _name, _arguments: {"z": 1}))
        return speaks[-1]

    first = {**entry("x", "one"), "tools": [{"name": "ask", "description": "a tool of the first"}]}
    engine = build([first, entry("y", "two")], {"one": LM, "two": LM}, speak_for=kept)
    await engine.setup("s")
    await engine.execute("s", [ToolCall("ask", "x", {})])
    await engine.execute("s", [ToolCall("ask", "y", {})])
    assert "a tool of the first" in speaks[1].asked[0]["messages"][1]["content"]


async def test_a_namespace_that_names_no_engine_gets_the_only_one() -> None:
    assert await asked(build([entry("x")], {"one": LM}), "x") == [{"model": "granite3.3:8b"}]


def test_a_namespace_that_names_no_engine_of_several_or_none_is_refused() -> None:
    with pytest.raises(
        ConfigurationInvalid, match=r"namespace 'y' names no engine and several are defined \(one, two\)"
    ) as c:
        build([entry("x", "one"), entry("y")], {"one": LM, "two": LM})
    assert c.value.at == ("registry", 1)
    with pytest.raises(ConfigurationInvalid, match="namespace 'x' names no engine and none is defined under engines"):
        build([entry("x")], {})


async def test_no_tools_need_no_engine() -> None:
    engine = build([], {})
    await engine.setup("s")
    assert (await engine.execute("s", [ToolCall("ask", "x", {})]))[0].is_error


def test_d66_an_undefined_engine_is_refused_also_for_a_registry_made_by_hand() -> None:
    registry = ToolRegistry([Toolset("x", "lm_smi", (Tool("ask", "x"),))])
    configuration = ToolsConfiguration.model_validate({"registry": [entry("x")], "engines": {"lm_sim": LM}})
    with pytest.raises(UnknownEngine, match=r"tools\.registry\[0\]\.engine: no engine 'lm_smi'; did you mean 'lm_sim'"):
        build_engine(configuration, registry, speak_for=no_speak)


@pytest.mark.parametrize(
    ("settings", "at", "cause"),
    [
        ({"type": "lmm"}, "type", "no engines of type 'lmm'; did you mean 'lm'"),
        ({}, "type", "the type is missing; known: a2a, lm, local, mcp, multi"),
        ({"type": "mcp", "urll": "x"}, "urll", "unknown key 'urll'; did you mean 'url'"),
        ({"type": "rest", "urll": "x"}, "urll", "unknown key 'urll'; did you mean 'url'"),
        ({"type": "lm"}, "lm_config", "this key is needed"),
        ({**LM, "candidate": 2}, "candidate", "unknown key 'candidate'; did you mean 'candidates'"),
        ({"type": "multi", "routes": {}}, "routes", "Dictionary should have at least 1 item"),
    ],
)
def test_d67_settings_are_checked_when_the_engine_is_built(settings: JSONObject, at: str, cause: str) -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        build([entry("x", "one")], {"one": settings})
    assert caught.value.at == ("engines", "one", at)
    assert caught.value.message.startswith(cause)


def test_d30_an_lm_config_without_a_type_is_refused_at_build() -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        build([entry("x")], {"one": {"type": "lm", "lm_config": {"model_id_or_path": "x"}}})
    assert caught.value.at == ("engines", "one", "lm_config", "type")


def test_an_lm_config_that_the_model_floor_refuses_is_blamed_at_its_place() -> None:
    def refusing(lm_config: JSONObject) -> Speak:
        message = f"no provider {lm_config['type']!r}"
        raise ValueError(message)

    with pytest.raises(ConfigurationInvalid, match=r"tools\.engines\.one\.lm_config: no provider 'ollama'"):
        build([entry("x")], {"one": LM}, speak_for=refusing)


def test_error_categories_are_checked_at_their_place() -> None:
    categories = [{"type": "network_error", "probability": 2}]
    with pytest.raises(ConfigurationInvalid) as caught:
        build([entry("x")], {"one": {**LM, "error_categories": categories}})
    assert caught.value.at == ("engines", "one", "error_categories", 0, "probability")


def test_an_engine_that_nothing_uses_is_not_built() -> None:
    build([entry("x", "one")], {"one": LM, "later": {"type": "mcp", "url": "http://localhost:8080"}})


def test_d40_the_engines_of_the_documented_block_are_built() -> None:
    configuration = ToolsConfiguration.model_validate(LIVE_BLOCK)
    toolsets = [
        Toolset("weather_api", "lm_sim", (Tool("now", "weather_api"),)),
        Toolset("hr_api", "mcp_live", (Tool("who", "hr_api"),)),
    ]
    engine = build_engine(configuration, ToolRegistry(toolsets), speak_for=speak_for)
    assert set(engine.toolsets) == {"weather_api", "hr_api"}


async def test_d61_multi_is_a_kind_like_any_other() -> None:
    engines = {"all": {"type": "multi", "routes": {"x": "one", "y": "one"}}, "one": LM}
    engine = build([entry("x", "all"), entry("y", "all")], engines)
    assert await asked(engine, "x", "y") == [{"model": "granite3.3:8b"}, {"model": "granite3.3:8b"}]


@pytest.mark.parametrize(
    ("routes", "cause"),
    [
        ({"y": "one"}, "no route for namespace 'x'"),
        ({"x": "oen"}, "no engine 'oen'; did you mean 'one'"),
        ({"x": "all"}, "engines route in a circle: all → all; break it"),
    ],
)
def test_routes_are_checked(routes: JSONObject, cause: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=cause):
        build([entry("x", "all")], {"all": {"type": "multi", "routes": routes}, "one": LM})


def test_d67_the_table_of_kinds_names_each_kind_once_and_every_builder_makes_an_engine() -> None:
    source = Path(kinds.__file__).read_text()
    for kind, builder in ENGINE_KINDS.items():
        assert source.count(f'"{kind}": ') == 1, "a second row would silently win"
        made = getattr(builder, "__self__", None) or get_type_hints(builder)["return"]  # A class method, or a function.
        assert issubclass(made, ToolEngine)
