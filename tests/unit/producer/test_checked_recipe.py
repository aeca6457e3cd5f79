"""What a job line is checked for against its recipe."""

from pathlib import Path

import pytest

from engines.errors import ConfigurationInvalid
from jobs.job import JobLine, seed_of
from producer.checked_recipe import check_recipe

RECIPE = """
name: drawn
seed: 5
model: {provider: offline}
tools:
  registry:
    - {type: inline, namespace: desk, engine: e, tools: [{name: note}, {name: read}]}
    - {type: inline, namespace: weather, engine: e, tools: [{name: get_weather}, {name: forecast}]}
  engines: {e: {type: lm, lm_config: {type: offline}}}
  namespaces: {desk: {stateful: true, max_concurrency: 1}}
  sample: {type: tc/random, k: 1}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE)
    return path


def test_the_route_of_a_job_follows_the_tools_that_its_own_seed_draws(recipe: Path) -> None:
    checked = check_recipe(recipe, is_local=True)
    routes = set()
    for index in range(40):
        job = JobLine(prompt="x")
        drawn = checked.selector.select(None, (), seed=seed_of(job, 5, index)).tools
        expected = ("desk",) if drawn[0].namespace == "desk" else ()
        assert checked.route_of_job(job, index) == expected
        routes.add(expected)
    assert routes == {(), ("desk",)}, "both were drawn"


def test_messages_that_no_model_server_would_take_are_refused_with_their_place(recipe: Path) -> None:
    orphan = JobLine.model_validate({"messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]})
    with pytest.raises(ConfigurationInvalid) as caught:
        check_recipe(recipe, is_local=True).route_of_job(orphan, 0)
    assert caught.value.at == ("messages",)
