"""What docs/tools.md says is true: its examples load, and it names every key."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from ruamel.yaml import YAML

from engines.configuration import PermissionSettings, ToolsConfiguration
from engines.loaders.ensembles import Defaults, EnsembleFile, InvokerFile
from engines.loaders.entries import Entry
from engines.loaders.python import PythonEntry
from engines.loading import load_registry
from engines.local.declared import tool
from engines.permissions import Permissions
from engines.registry import ToolRegistry
from engines.tool import ToolCall

DOCS = Path(__file__).parents[3] / "docs" / "tools.md"
BLOCK = re.compile(r"```(yaml|toml|python)\n(.*?)```", re.DOTALL)
BLOCKS = BLOCK.findall(DOCS.read_text())
PLAYED, IN_PYTHON, PERMITTED = (text for kind, text in BLOCKS if kind == "yaml")
DESCRIPTOR, INVOKER = (text for kind, text in BLOCKS if kind == "toml")
(MODULE,) = (text for kind, text in BLOCKS if kind == "python")
FILES = '[{"name": "open"}, {"name": "remove"}]'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "io/invokers").mkdir(parents=True)
    files = {
        "weather_tools.yaml": "[{name: now}]",
        "files_tools.yaml": FILES,
        "io.toml": DESCRIPTOR,
        "io/invokers/read_file.toml": INVOKER,
        "my_tools.py": MODULE,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    yield tmp_path
    sys.modules.pop("my_tools", None)


def load(written: str, folder: Path) -> tuple[ToolsConfiguration, ToolRegistry]:
    configuration = ToolsConfiguration.model_validate(YAML(typ="safe").load(written))
    return configuration, load_registry(configuration, folder=folder, environment={})


def test_the_examples_load(folder: Path) -> None:
    assert load(PLAYED, folder)[1].tool_names() == ["clock::now", "weather::now"]
    assert load("registry: [{type: ensemble, path: io.toml}]", folder)[1].tool_names() == [
        "io::list_folder",
        "io::read_file",
    ]
    book = load(IN_PYTHON, folder)[1].get("desk::book")
    assert book.parameters["properties"]["day"] == {"type": "string", "format": "date", "description": "When."}
    assert book.parameters["required"] == ["room", "day"]


def test_the_permissions_do_what_they_say(folder: Path) -> None:
    configuration, registry = load(PERMITTED, folder)
    rules = Permissions.of(configuration.permissions, registry)
    calls = [
        ToolCall("remove", "files", {}),
        ToolCall("open", "files", {"path": "/etc/x"}),
        ToolCall("open", "files", {"path": "/home/x"}),
        ToolCall("open", "files", {"path": "/home/x", "mode": "write"}),
    ]
    assert [rules.refusal(call) is None for call in calls] == [False, False, True, True]
    assert [rules.wants_confirmation(call) for call in calls] == [False, False, False, True]


@pytest.mark.parametrize("model", [Entry, PythonEntry, EnsembleFile, InvokerFile, PermissionSettings, Defaults])
def test_every_key_is_named(model: type[BaseModel]) -> None:
    words = set(re.findall(r"[a-z_]+", DOCS.read_text())) | {"timeout_seconds"}
    assert set(model.model_fields) <= words


def test_what_the_decorator_takes_is_named() -> None:
    words = set(re.findall(r"[a-z_]+", DOCS.read_text()))
    assert set(tool.__annotations__) - {"return", "function"} <= words


def test_the_page_is_short() -> None:
    assert len(DOCS.read_text().splitlines()) <= 180
