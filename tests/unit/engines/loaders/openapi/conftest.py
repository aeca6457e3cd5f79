"""Documents written for one test, loaded as a recipe's entry is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engines.loaders.entries import Surroundings
from engines.loaders.openapi.loader import load
from engines.tool import Tool

AT = ("registry", 0)


@pytest.fixture
def surroundings(tmp_path: Path) -> Surroundings:
    return Surroundings(at=AT, folder=tmp_path, environment={})


@pytest.fixture
def tools_of(tmp_path: Path, surroundings: Surroundings) -> Callable[..., dict[str, Tool]]:
    """Write a document into a file and load it, with further keys of the entry; tools by name."""

    def loaded(document: dict[str, Any], **keys: Any) -> dict[str, Tool]:
        (tmp_path / "api.json").write_text(json.dumps(document))
        entry = {"type": "openapi", "spec": "api.json", **keys}
        return {tool.name: tool for tool in load(entry, surroundings)}

    return loaded


@pytest.fixture
def tool_of(tools_of: Callable[..., dict[str, Tool]]) -> Callable[..., Tool]:
    """Load one operation: what stands in it, its method and path, and what the document holds besides."""

    def loaded(
        operation: dict[str, Any], *, method: str = "post", path: str = "/things", version: str = "3.1.0", **root: Any
    ) -> Tool:
        head = {"swagger": version} if version == "2.0" else {"openapi": version}
        document = {**head, "paths": {path: {method: operation}}, **root}
        (tool,) = tools_of(document).values()
        return tool

    return loaded
