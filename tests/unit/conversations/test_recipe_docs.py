"""What docs/recipes.md says is true: its examples load, and it names every key."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from conversations.models.settings import ModelSettings, OfflineSettings
from conversations.recipe import ConversationSettings, LimitSettings, Recipe
from conversations.recipe_files import load_recipe
from engines.configuration import NamespaceSettings, SampleSettings, ToolsConfiguration
from engines.toolset import ToolDefaults

DOCS = Path(__file__).parents[3] / "docs" / "recipes.md"
BLOCK = re.compile(r"```(yaml|toml)\n(.*?)```", re.DOTALL)


def test_every_example_loads(tmp_path: Path) -> None:
    examples = BLOCK.findall(DOCS.read_text())
    assert [kind for kind, _ in examples] == ["yaml", "toml"]
    for number, (kind, text) in enumerate(examples):
        path = tmp_path / f"{number}.{kind}"
        path.write_text(text)
        load_recipe(path)


@pytest.mark.parametrize(
    "model",
    [
        Recipe,
        ModelSettings,
        OfflineSettings,
        ConversationSettings,
        LimitSettings,
        ToolsConfiguration,
        NamespaceSettings,
        SampleSettings,
        ToolDefaults,
    ],
)
def test_every_key_is_named(model: type[BaseModel]) -> None:
    words = set(re.findall(r"[a-z_]+", DOCS.read_text()))
    assert set(model.model_fields) <= words


def test_the_page_is_short() -> None:
    assert len(DOCS.read_text().splitlines()) <= 150
