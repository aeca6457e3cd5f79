"""A recipe is checked with everything it names, and jobs against it."""

from pathlib import Path

import pytest

from conversations.errors import RecipeInvalid
from engines.errors import ConfigurationInvalid
from jobs.job import JobLine
from producer.checked_recipe import CheckedRecipe, check_recipe

RECIPE = """
name: {name}
seed: 3
model: {{provider: offline}}
conversation: {{system: "Speak {{{{ language | default('English') }}}}."}}
tools:
  registry:
    - type: inline
      namespace: shop
      engine: simulated
      tools: [{{name: price, description: A price., parameters: {{type: object}}}}]
    - type: inline
      namespace: till
      engine: simulated
      tools: [{{name: pay, description: Pays., parameters: {{type: object}}}}]
  engines:
    simulated: {{type: lm, lm_config: {lm_config}}}
  namespaces:
    till: {{stateful: true, max_concurrency: 2}}
"""


def checked(
    folder: Path, *, name: str = "r", lm_config: str = "{type: offline}", is_local: bool = True
) -> CheckedRecipe:
    path = folder / "my recipe.yaml"
    path.write_text(RECIPE.format(name=name, lm_config=lm_config))
    return check_recipe(path, is_local=is_local)


def test_a_job_s_route_is_of_the_stateful_namespaces_it_may_touch(tmp_path: Path) -> None:
    recipe = checked(tmp_path)
    assert recipe.route_of_job(JobLine(prompt="x"), 0) == ("till",)
    assert recipe.route_of_job(JobLine(prompt="x", tools=("shop::*",)), 0) == ()
    assert recipe.route_of_job(JobLine(prompt="x", disabled_tools=("till::pay",)), 0) == ()
    assert recipe.route_of_job(JobLine(prompt="x", tools=()), 0) == ()
    assert recipe.permit_limits == {"till": 2}


@pytest.mark.parametrize(
    ("job", "at", "said"),
    [
        (JobLine(prompt="x", tools=("shop::*", "shop::prize")), ("tools", 1), "did you mean 'shop::price'"),
        (JobLine(prompt="x", disabled_tools=("nope::*",)), ("disabled_tools", 0), "no tool 'nope::"),
        (JobLine(prompt="x", tools=("shop::*",), tool_choice="till::pay"), ("tool_choice",), "no tool 'till::pay'"),
        (JobLine(), (), 'a job needs either "messages" or "prompt"'),
        (JobLine(prompt="{{ who }}"), ("prompt",), "'who' is undefined"),
        (JobLine(prompt="{{ broken"), ("prompt",), "template"),
    ],
)
def test_a_job_that_does_not_fit_is_refused_with_the_place_in_its_line(
    tmp_path: Path, job: JobLine, at: tuple[str | int, ...], said: str
) -> None:
    with pytest.raises(ConfigurationInvalid, match=said) as caught:
        checked(tmp_path).route_of_job(job, 0)
    assert caught.value.at == at


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "permissions: {deny: [shop::*, shop::prize]}",
            r":18:33: tools.permissions.deny\[1\]: no tool 'shop::prize'; did you mean",
        ),
        ("namespaces: {shop: {tools: {prize: {}}}}", r":18:31: tools.namespaces.shop.tools.prize: no tool 'prize'"),
    ],
)
def test_what_the_recipe_says_of_tools_that_are_not_there_is_an_error_with_its_place(
    tmp_path: Path, more: str, said: str
) -> None:
    path = tmp_path / "r.yaml"
    text = RECIPE.format(name="r", lm_config="{type: offline}")
    path.write_text(text.partition("  namespaces:")[0] + f"  {more}\n")
    with pytest.raises(RecipeInvalid, match=said):
        check_recipe(path, is_local=True)


@pytest.mark.parametrize(
    "pattern", ["os:system", "shop::price; rm -rf", "{{ tools }}", "../shop::price", "shop::__class__"]
)
def test_sec_s23_a_job_s_patterns_name_tools_and_nothing_else(tmp_path: Path, pattern: str) -> None:
    for job in (JobLine(prompt="x", tools=(pattern,)), JobLine(prompt="x", disabled_tools=(pattern,))):
        with pytest.raises(ConfigurationInvalid, match="no tool"):
            checked(tmp_path).route_of_job(job, 0)
    with pytest.raises(ConfigurationInvalid, match="no tool"):
        checked(tmp_path).route_of_job(JobLine(prompt="x", tool_choice=pattern), 0)


def test_the_digest_follows_the_recipe_and_not_its_layout(tmp_path: Path) -> None:
    first = checked(tmp_path)
    path = tmp_path / "my recipe.yaml"
    path.write_text("# a remark\n" + path.read_text())
    assert check_recipe(path, is_local=True).digest == first.digest
    path.write_text(path.read_text().replace("seed: 3", "seed: 4"))
    assert check_recipe(path, is_local=True).digest != first.digest


@pytest.mark.parametrize(
    ("name", "as_run_id"),
    [("weather", "weather"), ('"my run/1 ü"', "my-run-1"), ('"…"', "run"), ("null", "my-recipe"), ('".."', "run")],
)
def test_a_recipe_s_name_is_made_fit_for_a_run_id(tmp_path: Path, name: str, as_run_id: str) -> None:
    assert checked(tmp_path, name=name).name == as_run_id


def test_the_models_of_engines_are_known_by_their_key(tmp_path: Path) -> None:
    recipe = checked(tmp_path, lm_config="{type: ollama, model_id_or_path: granite, url: 'http://here:1/v1'}")
    assert [str(model) for model in recipe.models] == [
        "model: offline (offline, no network)",
        "tools.engines.simulated.lm_config: granite (ollama, http://here:1/v1)",
    ]


def test_sec_s11_a_secret_must_be_here_only_when_the_workers_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lm_config = '{type: openai, model: m, api_key: "${PARLEY_TEST_NOT_SET}"}'
    with pytest.raises(RecipeInvalid, match="PARLEY_TEST_NOT_SET is not set"):
        checked(tmp_path, lm_config=lm_config)
    recipe = checked(tmp_path, lm_config=lm_config, is_local=False)
    assert "the workers must have them: PARLEY_TEST_NOT_SET" in capsys.readouterr().err
    assert b"${PARLEY_TEST_NOT_SET}" in recipe.stored_form


def test_sec_s11_a_mounted_secret_need_not_be_on_the_submitting_machine(tmp_path: Path) -> None:
    lm_config = '{type: openai, model: m, api_key: "file:/run/secrets/parley-test-nowhere"}'
    with pytest.raises(RecipeInvalid, match="parley-test-nowhere"):
        checked(tmp_path, lm_config=lm_config)
    assert (
        b"file:/run/secrets/parley-test-nowhere" in checked(tmp_path, lm_config=lm_config, is_local=False).stored_form
    )


def test_sec_s11_a_secret_s_value_is_not_in_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_TEST_KEY", "canary")
    recipe = checked(tmp_path, lm_config='{type: openai, model: m, api_key: "${PARLEY_TEST_KEY}"}')
    assert b"canary" not in recipe.stored_form
    assert "canary" not in repr(recipe)
