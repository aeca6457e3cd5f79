"""What docs/sampling.md says is true: it names every kind and every key, and its example loads."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel
from ruamel.yaml import YAML

from engines.configuration import SampleSettings, ToolsConfiguration
from engines.enrichments.dataflow import DataflowSettings
from engines.enrichments.encoders import ENCODER_KINDS, EncodingSettings
from engines.enrichments.fastembed_encoder import FastembedSettings
from engines.enrichments.kinds import ENRICHMENT_KINDS
from engines.enrichments.neighbors import NeighborsSettings
from engines.enrichments.output_parameters import OutputParametersSettings
from engines.kinds import ENGINE_KINDS
from engines.network.connection import ConnectionSettings
from engines.samplers.kinds import SAMPLER_KINDS
from engines.search.elasticsearch import ElasticsearchSettings
from engines.search.file import FileSettings
from engines.search.in_memory import InMemorySettings
from engines.search.web.duckduckgo import DuckDuckGoSettings
from engines.search.web.google_serper import GoogleSerperSettings

DOCS = (Path(__file__).parents[4] / "docs" / "sampling.md").read_text()


def test_every_kind_is_named() -> None:
    searches = [kind for kind in ENGINE_KINDS if kind.startswith("search/")]
    missing = [name for name in (*SAMPLER_KINDS, *ENRICHMENT_KINDS, *ENCODER_KINDS, *searches) if name not in DOCS]
    assert (missing, len(searches)) == ([], 5)


@pytest.mark.parametrize(
    "model",
    [
        SampleSettings,
        EncodingSettings,
        DataflowSettings,
        NeighborsSettings,
        OutputParametersSettings,
        FastembedSettings,
        InMemorySettings,
        FileSettings,
        ElasticsearchSettings,
        DuckDuckGoSettings,
        GoogleSerperSettings,
    ],
)
def test_every_key_is_named(model: type[BaseModel]) -> None:
    words = set(re.findall(r"[a-z_]+", DOCS))
    assert set(model.model_fields) - set(ConnectionSettings.model_fields) <= words


def test_the_example_loads() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", DOCS, re.DOTALL)
    configuration = ToolsConfiguration.model_validate(YAML(typ="safe", pure=True).load(example)["tools"])
    assert configuration.sample is not None
    assert all(entry["type"] in ENRICHMENT_KINDS for entry in configuration.enrichments)
