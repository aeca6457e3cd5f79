"""`conversation.external`: how long a call may take, and who is told; secrets stay references."""

import re
from pathlib import Path
from typing import Any

import pytest

from conversations.errors import RecipeInvalid
from conversations.recipe import find_references
from conversations.recipe_files import LoadedRecipe, load_recipe, recipe_to_json


def load(folder: Path, external: str) -> LoadedRecipe:
    path = folder / "recipe.yaml"
    path.write_text(f"model: {{provider: offline}}\nconversation: {{external: {external}}}\n")
    return load_recipe(path)


def test_a_call_may_take_a_day_and_nobody_is_told_unless_the_recipe_says_otherwise(tmp_path: Path) -> None:
    external = load(tmp_path, "{}").recipe.conversation.external
    assert (external.deadline_seconds, external.webhook) == (86_400, None)
    assert load(tmp_path, "{deadline_seconds: null}").recipe.conversation.external.deadline_seconds is None


@pytest.mark.parametrize(
    ("external", "told"),
    [
        ("{deadline_seconds: 0}", "conversation.external.deadline_seconds"),
        ("{deadline_seconds: soon}", "conversation.external.deadline_seconds"),
        ("{deadline: 3}", "deadline_seconds"),
    ],
)
def test_what_makes_no_sense_is_named(tmp_path: Path, external: str, told: str) -> None:
    with pytest.raises(RecipeInvalid, match=told):
        load(tmp_path, external)


@pytest.mark.parametrize("webhook", ["'https://desk.example/hook'", "{url: 'https://desk.example/hook'}"])
def test_a_webhook_is_a_url_or_a_connection(tmp_path: Path, webhook: str) -> None:
    settings = load(tmp_path, f"{{webhook: {webhook}}}").recipe.webhook_settings({})
    assert settings is not None
    assert settings.url == "https://desk.example/hook"


def test_sec_s11_the_webhooks_secret_is_resolved_where_it_is_used_and_stored_nowhere(tmp_path: Path) -> None:
    loaded = load(tmp_path, "{webhook: {url: 'https://desk.example', bearer_token: '${DESK_TOKEN}'}}")
    assert [reference.name for reference in find_references(loaded.recipe)] == ["DESK_TOKEN"]
    settings: Any = loaded.recipe.webhook_settings({"DESK_TOKEN": "hush-hush"})
    assert settings.bearer_token.get_secret_value() == "hush-hush"
    assert "hush" not in repr(settings)
    assert b"${DESK_TOKEN}" in recipe_to_json(loaded, {})


def test_the_recipe_of_the_page_is_a_recipe(checkout: Path, tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", (checkout / "docs" / "external.md").read_text(), re.DOTALL)
    (tmp_path / "recipe.yaml").write_text(f"model: {{provider: offline}}\n{block}")
    recipe = load_recipe(tmp_path / "recipe.yaml").recipe
    assert [entry["engine"] for entry in recipe.tools.registry] == ["external", "python"]
