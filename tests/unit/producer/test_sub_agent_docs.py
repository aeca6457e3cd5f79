"""What docs/sub_agents.md says is true: its recipes can be used, and it names every key."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel
from ruamel.yaml import YAML

from engines.a2a.settings import A2ASettings
from engines.checked import checked
from engines.configuration import ToolsConfiguration
from engines.loaders.a2a import A2AEntry
from engines.loaders.entries import Entry
from engines.loaders.recipe import RecipeEntry
from engines.network.connection import ConnectionSettings
from producer.checked_recipe import check_recipe

DOCS = Path(__file__).parents[3] / "docs" / "sub_agents.md"
BLOCKS = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(), re.DOTALL)


def test_the_example_with_two_recipes_can_be_used(tmp_path: Path) -> None:
    outer, inner, _ = BLOCKS
    (tmp_path / "researcher.yaml").write_text(inner)
    (tmp_path / "recipe.yaml").write_text(outer)
    found = check_recipe(tmp_path / "recipe.yaml", is_local=True)
    assert [tool.qualified_name for tool in found.registry.all_tools()] == ["agents::research"]


def test_the_example_with_an_agent_is_read() -> None:
    block = ToolsConfiguration.model_validate(YAML(typ="safe").load(BLOCKS[2])["tools"])
    checked(A2AEntry, block.registry[0], at=("registry", 0))
    checked(A2ASettings, block.engines["travel_agents"], at=("engines",))


@pytest.mark.parametrize("model", [RecipeEntry, A2AEntry, A2ASettings])
def test_every_key_is_named(model: type[BaseModel]) -> None:
    words = set(re.findall(r"[a-z_0-9]+", DOCS.read_text()))
    others = {*Entry.model_fields, *ConnectionSettings.model_fields, "error_categories"}
    assert set(model.model_fields) - others <= words
