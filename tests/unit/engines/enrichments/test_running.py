"""Enrichments as a tools block asks for them: at load, again at a refresh, and pinned for the workers."""

import json
from pathlib import Path
from typing import Any

import pytest

from engines.configuration import SampleSettings, ToolsConfiguration
from engines.errors import ConfigurationInvalid
from engines.loading import load_registry, pinned
from engines.plain import JSONObject
from engines.samplers.sampler import build_sampler
from engines.tool import INFERRED_OUTPUT
from tests.unit.engines.enrichments.materials import AnsweringSpeak, an_object, opening, shop_tools

SKY = an_object(city={"type": "string"})


def block(*enrichments: JSONObject, sample: JSONObject | None = None, **more: Any) -> ToolsConfiguration:
    tools = [tool.to_dict() for tool in shop_tools()]
    registry = [{"type": "inline", "tools": tools}]
    return ToolsConfiguration.model_validate(
        {"registry": registry, "enrichments": enrichments, "sample": sample, **more}
    )


def test_d77_enrichments_run_when_the_tools_are_loaded_whatever_their_order() -> None:
    registry = load_registry(
        block({"type": "neighbors"}, {"type": "dataflow"}, {"type": "embeddings"}), folder=Path(), environment={}
    )
    assert set(registry.artifacts) == {"neighbors", "dataflow", "embeddings"}
    assert registry.all_tools() == tuple(shop_tools())


async def test_enrichments_run_inside_a_running_loop_too() -> None:
    assert load_registry(block({"type": "dataflow"}), folder=Path(), environment={}).artifacts


def test_d77_what_a_model_made_up_is_read_by_the_dataflow_and_pinned_with_the_tools(tmp_path: Path) -> None:
    speak = AnsweringSpeak(lambda _name, _times: json.dumps(SKY))
    configuration = block({"type": "dataflow"}, {"type": "output_parameters", "lm_config": {"type": "scripted"}})
    environment = {"PARLEY_CACHE_DIR": str(tmp_path)}
    registry = load_registry(configuration, folder=Path(), environment=environment, open_speak=opening(speak))
    weather = registry.get("sky::tell_weather")
    assert (weather.output_parameters, weather.metadata[INFERRED_OUTPUT]) == (SKY, True)
    again = load_registry(configuration, folder=Path(), environment=environment, open_speak=opening(speak))
    assert again == registry
    assert speak.asked == ["sky::tell_weather"]
    stored = ToolsConfiguration.model_validate(pinned(configuration, registry))
    assert load_registry(stored, folder=Path(), environment={}) == registry


@pytest.mark.parametrize(
    ("enrichments", "sample", "kept"),
    [
        ([{"type": "dataflow"}], {"type": "tc/chain", "k": 2}, {"dataflow": ["out"]}),
        ([{"type": "dataflow"}], {"type": "tc/fan_in", "k": 2}, {"dataflow": ["in"]}),
        ([{"type": "embeddings"}, {"type": "neighbors"}], {"type": "tc/neighbor", "k": 2}, {"neighbors": ["near"]}),
        ([{"type": "dataflow"}, {"type": "embeddings"}], {"type": "tc/random", "k": 2}, {}),
    ],
)
def test_a_worker_draws_the_same_tools_from_what_is_pinned(
    enrichments: list[JSONObject], sample: JSONObject, kept: dict[str, list[str]]
) -> None:
    configuration = block(*enrichments, sample=sample)
    registry = load_registry(configuration, folder=Path(), environment={})
    stored = json.loads(json.dumps(pinned(configuration, registry)))
    assert {key: list(value) for key, value in stored["artifacts"].items()} == kept
    assert "enrichments" not in stored
    elsewhere = load_registry(ToolsConfiguration.model_validate(stored), folder=Path("/nowhere"), environment={})
    settings = SampleSettings.model_validate(sample)
    here, there = build_sampler(settings, registry), build_sampler(settings, elsewhere)
    assert [here.sample(seed=seed) for seed in range(20)] == [there.sample(seed=seed) for seed in range(20)]
    assert pinned(ToolsConfiguration.model_validate(stored), elsewhere)["artifacts"] == stored["artifacts"]


def test_equal_recipes_pin_equal_artifacts() -> None:
    configuration = block({"type": "dataflow"}, sample={"type": "tc/dag", "k": 3})
    one, other = (
        json.dumps(pinned(configuration, load_registry(configuration, folder=Path(), environment={}))) for _ in range(2)
    )
    assert one == other


def test_d75_a_refresh_runs_loaders_and_enrichments_again(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([tool.to_dict() for tool in shop_tools()[:2]]))
    configuration = ToolsConfiguration.model_validate(
        {
            "registry": [{"type": "file", "path": "tools.json"}],
            "enrichments": [{"type": "neighbors"}, {"type": "embeddings"}],
        }
    )
    registry = load_registry(configuration, folder=tmp_path, environment={})
    before = registry.artifacts
    path.write_text(json.dumps([tool.to_dict() for tool in shop_tools()]))
    registry.refresh()
    assert set(registry.artifacts["embeddings"]) == {tool.qualified_name for tool in shop_tools()}
    path.write_text("broken")
    with pytest.raises(ConfigurationInvalid):
        registry.refresh()
    assert len(registry) == len(registry.artifacts["embeddings"]) == 4
    assert len(before["embeddings"]) == 2


def test_references_of_an_enrichment_are_resolved_for_it_alone() -> None:
    seen = []

    def resolve(entry: JSONObject, at: tuple[str | int, ...]) -> JSONObject:
        seen.append((entry["type"], at))
        return {key: 1 if value == "${MOST}" else value for key, value in entry.items()}

    configuration = block({"type": "dataflow", "max_neighbors": "${MOST}"})
    registry = load_registry(configuration, folder=Path(), environment={}, resolve=resolve)
    assert ("dataflow", ("enrichments", 0)) in seen
    assert all(len(edges) == 1 for edges in registry.artifacts["dataflow"]["out"].values())
    assert "${MOST}" not in str(pinned(configuration, registry))


@pytest.mark.parametrize(
    ("enrichments", "message"),
    [
        ([{"type": "dataflo"}], r"enrichments\[0\]\.type: no enrichment 'dataflo'; did you mean 'dataflow'\?"),
        ([{}], r"enrichments\[0\]\.type: the type is missing"),
        ([{"type": "dataflow", "max_neighbours": 3}], r"\[0\]\.max_neighbours: .*did you mean 'max_neighbors'\?"),
        ([{"type": "neighbors"}], r"enrichments\[0\]: it needs the artifact 'embeddings'"),
        ([{"type": "output_parameters"}], r"enrichments\[0\]\.lm_config: this key is needed"),
        ([{"type": "output_parameters", "lm_config": {}}], "there is no way to a model here"),
    ],
)
def test_d76_a_wrong_entry_is_an_error_at_its_place(enrichments: list[JSONObject], message: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=message):
        load_registry(block(*enrichments), folder=Path(), environment={})


def test_d80_a_sample_whose_artifact_no_enrichment_makes_is_refused_at_submit() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"tools\.sample\.type: tc/chain needs the artifact 'dataflow'"):
        load_registry(block(sample={"type": "tc/chain", "k": 2}), folder=Path(), environment={})


def test_d81_a_sample_that_no_job_could_have_is_refused_at_submit() -> None:
    configuration = block({"type": "dataflow", "min_score": 0.5}, sample={"type": "tc/chain", "k": 4})
    with pytest.raises(ConfigurationInvalid, match=r"tools\.sample\.k: a chain of 4 tools asked for"):
        load_registry(configuration, folder=Path(), environment={})
