"""Recipes as files: every error says file, line, column and the way out (decision 11); the stored form comes back."""

from pathlib import Path

import orjson
import pytest

from conversations.errors import RecipeInvalid
from conversations.recipe_files import load_recipe, recipe_from_json, recipe_to_json
from engines.errors import ConfigurationInvalid
from engines.loading import load_registry, pinned

# The example of the design, word for word, but for the models it leaves open.
DESIGN = """\
model: {provider: openai, model: qwen3, base_url: http://localhost:8000/v1, api_key: ${OPENAI_API_KEY}}
conversation: {system: "…", max_turns: 20, max_tool_calls: 10, user: {persona: "…", max_user_turns: 4}}
tools:                       # the block of the engines' own documentation, verbatim
  registry:
    - type: file
      path: weather_tools.yaml
      namespace: weather_api
      engine: lm_sim          # simulated execution for file-loaded tools
    - type: mcp
      url: http://localhost:8080
      namespace: hr_api
      engine: mcp_live        # real MCP execution for live tools
  engines:
    lm_sim:
      type: lm
      lm_config: {type: ollama, model_id_or_path: granite3.3:8b}
    mcp_live:
      type: mcp
      url: http://localhost:8080
"""
WEATHER = """\
model: {provider: offline}
tools:
  registry:
    - {type: inline, namespace: w, engine: e, tools: [{name: now, description: "says ${HOME}"}]}
  engines:
    e: {type: lm, lm_config: {type: offline, api_key: "${KEY}"}}
  namespaces:
    w: {stateful: true}
"""


def written(folder: Path, text: str, name: str = "r.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def refused(folder: Path, text: str, name: str = "r.yaml") -> list[str]:
    path = written(folder, text, name)
    with pytest.raises(RecipeInvalid) as caught:
        load_recipe(path)
    return str(caught.value).replace(f"{folder}/", "").splitlines()


def test_the_tools_block_of_the_seed_loads_verbatim(tmp_path: Path) -> None:
    loaded = load_recipe(written(tmp_path, DESIGN))
    assert [entry["type"] for entry in loaded.recipe.tools.registry] == ["file", "mcp"]
    assert loaded.recipe.tools.engines["lm_sim"]["lm_config"]["model_id_or_path"] == "granite3.3:8b"
    assert loaded.recipe.model["api_key"] == "${OPENAI_API_KEY}"
    assert (loaded.folder, loaded.text) == (tmp_path, DESIGN)


def test_a_toml_recipe_says_the_same(tmp_path: Path) -> None:
    text = 'seed = 3\n[model]\nprovider = "offline"\n[conversation]\nmax_turns = 4\n'
    text += '[[tools.registry]]\ntype = "file"\npath = "x.yaml"\n'
    recipe = load_recipe(written(tmp_path, text, "r.toml")).recipe
    assert (recipe.seed, recipe.conversation.max_turns, recipe.tools.registry) == (
        3,
        4,
        ({"type": "file", "path": "x.yaml"},),
    )


def test_decision_11_unknown_keys_name_file_line_column_and_the_nearest_key(tmp_path: Path) -> None:
    text = """\
model:
  provider: offline
  temprature: 0.5
  offline: {turns: 3, latency: 5}
conversation:
  max_turn: 4
tools:
  regstry: []
  namespaces:
    hr:
      max_concurency: 4
      defaults: {timeout: 3}
limits: {attempts: 3}
modl: x
"""
    assert refused(tmp_path, text) == [
        "r.yaml:3:3: model.temprature: unknown key; did you mean 'temperature'?",
        "r.yaml:4:23: model.offline.latency: unknown key; did you mean 'latency_ms'?",
        "r.yaml:6:3: conversation.max_turn: unknown key; did you mean 'max_turns'?",
        "r.yaml:8:3: tools.regstry: unknown key; did you mean 'registry'?",
        "r.yaml:11:7: tools.namespaces.hr.max_concurency: unknown key; did you mean 'max_concurrency'?",
        "r.yaml:12:18: tools.namespaces.hr.defaults.timeout: unknown key; did you mean 'timeout_seconds'?",
        "r.yaml:13:10: limits.attempts: unknown key; did you mean 'max_attempts'?",
        "r.yaml:14:1: modl: unknown key; did you mean 'model'?",
    ]


def test_decision_11_holds_for_toml(tmp_path: Path) -> None:
    text = '[model]\nprovider = "offline"\n\n[conversation]\nmax_turn = 4\n'
    assert refused(tmp_path, text, "r.toml") == [
        "r.toml:5:1: conversation.max_turn: unknown key; did you mean 'max_turns'?"
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("conversation: {}\n", "r.yaml:1:1: model: is missing"),
        ("model:\n", "r.yaml:1:1: model: Input should be a valid dictionary"),
        ("model: {provider: offline}\nseed: lots\n", "r.yaml:2:7: seed: Input should be a valid integer"),
        ("model: {provider: offlin}\n", "r.yaml:1:19: model.provider: Input should be 'openai'"),
        ("model: {provider: openai}\n", "r.yaml:1:1: model: model: provider 'openai' needs the name of a model"),
        ("model: {provider: openai, model: m, url: x, base_url: y}\n", "r.yaml:1:1: model: `url` and `base_url` mean"),
        ("model: {provider: offline, api_key: 'a ${'}\n", "r.yaml:1:37: model.api_key: `${` begins no reference"),
        (
            "model: {provider: offline}\nconversation:\n  user: {person: p}\n",
            "r.yaml:3:10: conversation.user.person: unknown key; did you mean 'persona'?",
        ),
        (
            "model: {provider: offline}\nconversation:\n  user: {model: {provider: offlin}}\n",
            "r.yaml:3:28: conversation.user.model.provider: Input should be 'openai'",
        ),
        ("model: {provider: offline}\ntools:\n  - x\n", "r.yaml:3:5: tools[0]: Input should be a valid dictionary"),
        (
            "model: {provider: offline}\ntools: {sample: {type: tc/random, k: 0}}\n",
            "r.yaml:2:38: tools.sample.k: Input",
        ),
        (
            "model: {provider: offline}\ntools: {sample: {type: tc/chian, k: 2}}\n",
            "r.yaml:2:24: tools.sample.type: Input",
        ),
    ],
)
def test_what_is_wrong_says_where(tmp_path: Path, text: str, said: str) -> None:
    assert refused(tmp_path, text)[0].startswith(said)


def test_a_file_that_is_no_recipe_says_so(tmp_path: Path) -> None:
    assert refused(tmp_path, "", "r.json") == ["r.json: a recipe's name ends in .yaml, .yml, .toml"]
    (tmp_path / "b.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(RecipeInvalid, match=r"b\.yaml:2:4: not UTF-8 text"):
        load_recipe(tmp_path / "b.yaml")
    with pytest.raises(RecipeInvalid, match=r"none\.yaml: cannot be read: No such file or directory"):
        load_recipe(tmp_path / "none.yaml")
    (tmp_path / "d.yaml").mkdir()
    with pytest.raises(RecipeInvalid, match=r"cannot be read: Is a directory"):
        load_recipe(tmp_path / "d.yaml")


def test_sec_s16_a_recipe_of_more_than_one_megabyte_is_not_even_parsed(tmp_path: Path) -> None:
    assert refused(tmp_path, "[" * ((1 << 20) + 1)) == ["r.yaml: longer than 1 MB; keep tools in files of their own"]


@pytest.mark.parametrize("suffix", ["yaml", "yml", "toml"])
def test_sec_s16_of_a_hundred_megabytes_only_the_first_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"r.{suffix}"
    with path.open("wb") as file:
        file.write(b"model: {provider: offline}\n")
        file.truncate(100 << 20)  # sparse: it costs no disk
    with pytest.raises(RecipeInvalid, match="longer than 1 MB"):
        load_recipe(path)


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.system", "!!python/object/new:os.system", "!!python/name:os"]
)
def test_sec_s16_a_recipe_runs_nothing(tmp_path: Path, tag: str) -> None:
    canary = tmp_path / "canary"
    path = written(tmp_path, f"model: {{provider: offline}}\nname: {tag} ['touch {canary}']\n")
    with pytest.raises(RecipeInvalid, match=r"r\.yaml:2:7: the tag .* is not allowed in a recipe"):
        load_recipe(path)
    assert not canary.exists()


def test_a_byte_order_mark_is_no_harm(tmp_path: Path) -> None:
    text = '\ufeff[model]\nprovider = "offline"\n'
    assert load_recipe(written(tmp_path, text, "r.toml")).recipe.model == {"provider": "offline"}
    assert load_recipe(written(tmp_path, "\ufeffmodel: {provider: offline}\n")).recipe.model == {"provider": "offline"}


def test_errors_of_the_tools_block_get_their_place(tmp_path: Path) -> None:
    loaded = load_recipe(written(tmp_path, DESIGN))
    with pytest.raises(ConfigurationInvalid) as caught:
        load_registry(loaded.recipe.tools, folder=loaded.folder, environment={})
    said = str(loaded.located(caught.value)).replace(f"{tmp_path}/", "")
    assert said.startswith("r.yaml:6:13: tools.registry[0].path: ")
    nowhere = loaded.located(
        ConfigurationInvalid("no such engine; did you mean 'lm_sim'?", at=("registry", 1, "engine"))
    )
    assert (nowhere.line, nowhere.column) == (12, 15)


def test_a_list_of_tools_is_a_registry_and_its_errors_are_placed_too(tmp_path: Path) -> None:
    loaded = load_recipe(written(tmp_path, "model: {provider: offline}\ntools:\n  - type: inline\n    tool: []\n"))
    error = loaded.located(ConfigurationInvalid("bad", at=("registry", 0, "tool")))
    assert (error.line, error.column, error.message) == (4, 5, "tools[0].tool: bad")


def test_the_stored_form_comes_back_with_pinned_tools_and_unresolved_references(tmp_path: Path) -> None:
    loaded = load_recipe(written(tmp_path, WEATHER))
    registry = load_registry(loaded.recipe.tools, folder=loaded.folder, environment={})
    stored = recipe_to_json(loaded, pinned(loaded.recipe.tools, registry))
    recipe = recipe_from_json(stored)
    assert recipe.model_dump(exclude={"tools"}) == loaded.recipe.model_dump(exclude={"tools"})
    assert b"${KEY}" in stored
    assert load_registry(recipe.tools, folder=Path("/nowhere"), environment={}) == registry
    resolved = recipe.tools_configuration({"KEY": "k"})
    assert resolved.engines["e"]["lm_config"]["api_key"] == "k"
    assert load_registry(resolved, folder=Path("/nowhere"), environment={}) == registry


def test_the_stored_form_is_equal_for_equal_recipes(tmp_path: Path) -> None:
    lines = WEATHER.splitlines(keepends=True)
    one = load_recipe(written(tmp_path, WEATHER))
    other = load_recipe(written(tmp_path, "".join(lines[1:] + lines[:1]), "other.yaml"))
    block = one.recipe.tools.model_dump(mode="json")
    assert recipe_to_json(one, block) == recipe_to_json(other, dict(reversed(block.items())))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"format":2,"recipe":{"model":{"provider":"offline"}}}',
        b'{"format":1}',
        b"\xff",
        b'{"format":1,"recipe":{"model":{"x":1}}}',
    ],
)
def test_a_stored_recipe_that_is_damaged_is_refused(data: bytes) -> None:
    with pytest.raises(RecipeInvalid, match="the stored recipe is"):
        recipe_from_json(data)


def test_integers_of_a_schema_are_stored_as_they_are(tmp_path: Path) -> None:
    loaded = load_recipe(written(tmp_path, "model: {provider: offline}\n"))
    block = {"registry": [{"type": "inline", "tools": [{"name": "x", "parameters": {"maximum": 2**80}}]}]}
    recipe = recipe_from_json(recipe_to_json(loaded, block))
    assert recipe.tools.registry[0]["tools"][0]["parameters"]["maximum"] == 2**80
    assert orjson.loads(recipe_to_json(loaded, block))["format"] == 1
