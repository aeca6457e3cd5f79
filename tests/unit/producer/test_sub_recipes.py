"""Recipes that a recipe names as tools are checked with it, pinned whole, and never call one another for ever."""

import json
from pathlib import Path
from typing import Any

import pytest

from conversations.errors import RecipeInvalid
from conversations.recipe_files import recipe_from_json
from engines.recipes.sub_agent import SubAgent
from jobs.job import JobLine
from producer.checked_recipe import CheckedRecipe, check_recipe

TOOLS = """
    - type: inline
      namespace: {namespace}
      engine: simulated
      tools: [{{name: find, description: Finds., parameters: {{type: object}}}}]
"""


def recipe(
    folder: Path,
    name: str,
    *below: str,
    namespace: str = "library",
    stateful: int = 0,
    system: str = "Be brief.",
    entry: str = "",
    more: str = "",
) -> Path:
    """Write a recipe whose tools are a namespace of its own and the recipes `below`."""
    entries = "".join(
        f"\n    - {{type: recipe, path: {each}.yaml, name: {each}, description: Does it., namespace: agents, "
        f"engine: agents{entry}}}"
        for each in below
    )
    settings = f"{{{namespace}: {{stateful: true, max_concurrency: {stateful}}}}}" if stateful else "{}"
    path = folder / f"{name}.yaml"
    path.write_text(f"""
name: {name}
model: {{provider: offline, model: {name}}}
conversation: {{system: "{system}"{more}}}
tools:
  registry:{TOOLS.format(namespace=namespace)}{entries}
  engines:
    simulated: {{type: lm, lm_config: {{type: offline, model_id_or_path: played}}}}
    agents: {{type: recipe}}
  namespaces: {settings}
""")
    return path


def checked(path: Path) -> CheckedRecipe:
    return check_recipe(path, is_local=True)


def refused(path: Path) -> str:
    with pytest.raises(RecipeInvalid) as caught:
        checked(path)
    return str(caught.value)


def pinned_below(found: CheckedRecipe, name: str) -> dict[str, Any]:
    stored = json.loads(found.stored_form)["recipe"]["tools"]["registry"]
    (tool,) = (each for entry in stored for each in entry["tools"] if each["name"] == f"agents::{name}")
    agent: dict[str, Any] = tool["metadata"]["sub_agent"]
    return agent


def test_a_sub_agent_is_pinned_whole_and_needs_no_file_afterwards(tmp_path: Path) -> None:
    recipe(tmp_path, "inner", system="Look for {{ task }}.")
    found = checked(recipe(tmp_path, "outer", "inner"))
    agent = SubAgent.model_validate(pinned_below(found, "inner"))
    below = recipe_from_json(json.dumps(agent.recipe).encode())
    assert (below.name, below.conversation.system) == ("inner", "Look for {{ task }}.")
    assert [entry["namespace"] for entry in below.tools.registry] == ["library"]
    assert agent.prompt == "{{ task }}"


def test_a_change_of_a_sub_agent_is_a_change_of_the_recipe(tmp_path: Path) -> None:
    recipe(tmp_path, "inner")
    first = checked(recipe(tmp_path, "outer", "inner")).digest
    assert checked(tmp_path / "outer.yaml").digest == first
    recipe(tmp_path, "inner", system="Be long.")
    assert checked(tmp_path / "outer.yaml").digest != first


def test_references_of_a_sub_agent_stay_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "hush-hush")
    inner = recipe(tmp_path, "inner")
    inner.write_text(inner.read_text().replace("model: inner}", "model: inner, api_key: '${KEY}'}"))
    stored = checked(recipe(tmp_path, "outer", "inner")).stored_form.decode()
    assert "${KEY}" in stored
    assert "hush" not in stored


def test_recipes_that_call_one_another_in_a_circle_are_refused(tmp_path: Path) -> None:
    recipe(tmp_path, "one", "two")
    recipe(tmp_path, "two", "three")
    recipe(tmp_path, "three", "one")
    said = refused(tmp_path / "one.yaml")
    assert "recipes call one another in a circle: one.yaml → two.yaml → three.yaml → one.yaml; break it" in said
    assert f"{tmp_path}/three.yaml:" in said


def test_a_recipe_that_calls_itself_is_refused(tmp_path: Path) -> None:
    assert "in a circle: one.yaml → one.yaml" in refused(recipe(tmp_path, "one", "one"))


def test_sub_agents_lie_three_deep_and_no_deeper(tmp_path: Path) -> None:
    for name, *below in (("e",), ("d", "e"), ("c", "d"), ("b", "c"), ("a", "b")):
        recipe(tmp_path, name, *below)
    assert pinned_below(checked(tmp_path / "b.yaml"), "c")
    assert "at most 3 deep, and this is 4: a.yaml → b.yaml → c.yaml → d.yaml → e.yaml" in refused(tmp_path / "a.yaml")


def test_two_tools_may_share_a_recipe_and_a_diamond_is_no_circle(tmp_path: Path) -> None:
    recipe(tmp_path, "d")
    recipe(tmp_path, "b", "d")
    recipe(tmp_path, "c", "d")
    assert pinned_below(checked(recipe(tmp_path, "a", "b", "c")), "c")


def test_a_mistake_in_a_sub_agent_is_told_with_both_places(tmp_path: Path) -> None:
    inner = recipe(tmp_path, "inner")
    inner.write_text(inner.read_text().replace("conversation:", "conversatoin:"))
    said = refused(recipe(tmp_path, "outer", "inner"))
    assert "outer.yaml:" in said
    assert "tools.registry[1].path: the recipe behind this tool:" in said
    assert "inner.yaml:4:1: conversatoin: unknown key; did you mean 'conversation'" in said


def test_a_sub_agent_that_is_not_there_is_told_where_it_is_named(tmp_path: Path) -> None:
    said = refused(recipe(tmp_path, "outer", "inner"))
    assert "tools.registry[1].path" in said
    assert "No such file" in said


@pytest.mark.parametrize(
    ("inner", "entry", "said"),
    [
        ({"system": "About {{ topic }}"}, "", "'topic' is undefined"),
        ({}, ", prompt: 'About {{ topic }}'", "'topic' is undefined"),
        ({}, ", prompt: 'About {{ task'", "template"),
        ({"more": ", user: {persona: x}"}, "", "a sub-agent's user is the one who calls it"),
    ],
)
def test_what_no_call_could_fill_in_or_answer_is_refused(
    tmp_path: Path, inner: dict[str, str], entry: str, said: str
) -> None:
    recipe(tmp_path, "inner", **inner)  # type: ignore[arg-type]  # texts only
    assert said in refused(recipe(tmp_path, "outer", "inner", entry=entry))


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("namespaces: {}", "namespaces: {library: {tools: {find: {confirm: true}}}}"),
        ("namespaces: {}", "namespaces: {library: {tools: {find: {external: true}}}}"),
        ("engine: simulated", "engine: external"),
    ],
)
def test_a_sub_agent_with_tools_that_wait_for_somebody_is_refused(tmp_path: Path, written: str, instead: str) -> None:
    inner = recipe(tmp_path, "inner")
    inner.write_text(inner.read_text().replace(written, instead))
    said = refused(recipe(tmp_path, "outer", "inner"))
    assert "a sub-agent cannot wait for somebody outside" in said
    assert "library::find" in said


def test_a_job_holds_permits_of_the_namespaces_that_its_sub_agents_touch(tmp_path: Path) -> None:
    recipe(tmp_path, "deep", namespace="till", stateful=3)
    recipe(tmp_path, "inner", "deep")
    found = checked(recipe(tmp_path, "outer", "inner", namespace="till", stateful=5))
    assert found.permit_limits == {"till": 3}
    assert found.route_of_job(JobLine(prompt="x"), 0) == ("till",)
    assert found.route_of_job(JobLine(prompt="x", tools=("agents::*",)), 0) == ("till",)
    assert found.route_of_job(JobLine(prompt="x", tools=()), 0) == ()


def test_models_and_folders_of_sub_agents_are_the_recipes_too(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    recipe(tmp_path / "elsewhere", "inner")
    outer = recipe(tmp_path, "outer", "inner")
    outer.write_text(outer.read_text().replace("path: inner.yaml", "path: elsewhere/inner.yaml"))
    found = checked(outer)
    assert "inner.yaml: model" in [model.key for model in found.models]
    assert tmp_path / "elsewhere" in found.module_folders
