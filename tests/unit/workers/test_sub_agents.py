"""Another recipe as a tool: its whole conversation runs inside the job, and the record tells what it used."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from conversations.errors import RecipeInvalid
from engines.errors import ConfigurationInvalid
from tests.unit.workers.conftest import RUN, Bench, Benches
from tests.unit.workers.test_execute import equipment_of

RESEARCHER = """
model: {provider: offline, model: nested, offline: {turns: 3}}
conversation: {system: "You research {{ task }}."}
tools:
  registry:
    - type: inline
      namespace: weather
      engine: local
      tools:
        - {name: get_weather, parameters: {type: object, properties: {city: {type: string}}, required: [city]}}
  engines: {local: {type: local, module: tests.support.weather_functions, inline: true}}
"""
RECIPE = """
model: {provider: offline, model: mock, offline: {turns: 2}}
tools:
  registry:
    - {type: recipe, path: researcher.yaml, name: research, description: Finds things out., namespace: agents, engine: agents}
  engines: {agents: {type: recipe}}
"""
JOB: Mapping[str, Any] = {"id": "mine", "prompt": "Find out about Lisbon", "seed": 7}


def write(benches: Benches, **recipes: str) -> None:
    for name, text in recipes.items():
        (benches.folder / f"{name}.yaml").write_text(text)


async def test_u1_a_call_of_a_recipe_is_a_whole_conversation_whose_last_text_is_the_result(benches: Benches) -> None:
    write(benches, researcher=RESEARCHER)
    async with benches.bench(RECIPE, [JOB]) as bench:
        assert await bench.execute() == "ok"
    (record,) = bench.records()
    (result,) = record["tool_results"]
    assert result["name"] == "agents::research"
    assert isinstance(result["result"], str)
    assert result["result"]
    used = {key: value for key, value in result["metadata"]["sub_agent"].items() if "tokens" not in key}
    assert used == {"model_calls": 3, "tool_calls": 2}
    assert record["metadata"]["sub_agents"]["agents::research"].items() >= {"calls": 1, "failed": 0, **used}.items()
    assert record["usage"]["model_calls"] == 2
