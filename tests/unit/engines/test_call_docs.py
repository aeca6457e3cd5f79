"""What docs/calls.md says is true: its examples are valid, and it names every key and every type of fault."""

import re
from io import StringIO
from pathlib import Path

import pytest
from pydantic import BaseModel
from ruamel.yaml import YAML

from engines.calling import faults, lanes
from engines.calling.faults import ErrorCategory
from engines.configuration import NamespaceSettings
from engines.toolset import CacheSettings

DOCS = Path(__file__).parents[3] / "docs" / "calls.md"
BLOCK = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def test_the_examples_are_valid() -> None:
    engines, namespaces = (YAML(typ="safe").load(StringIO(text)) for text in BLOCK.findall(DOCS.read_text()))
    for settings in engines["engines"].values():
        for category in settings["error_categories"]:
            ErrorCategory.model_validate(category)
    for settings in namespaces["namespaces"].values():
        NamespaceSettings.model_validate(settings)


@pytest.mark.parametrize("model", [ErrorCategory, CacheSettings])
def test_every_key_is_named(model: type[BaseModel]) -> None:
    words = set(re.findall(r"[a-z_]+", DOCS.read_text()))
    assert set(model.model_fields) <= words


def test_every_type_of_its_own_and_every_figure_is_told() -> None:
    text = DOCS.read_text()
    for type_ in (*faults.NEEDING_THE_TOOL, faults.EMPTY_RESULT, faults.OUTAGE, faults.RATE_LIMITED):
        assert f"`{type_}`" in text
    assert f"at most {lanes._AT_ONCE} at a time" in text
    assert f"calls` calls ({ErrorCategory.model_fields['calls'].default})" in text
