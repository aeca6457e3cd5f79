"""The mcp package: the one in use is the one that this is written for."""

import importlib.metadata
import tomllib
from pathlib import Path

from packaging.requirements import Requirement


def test_d43_the_installed_package_is_of_the_version_that_is_asked_for(checkout: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    (asked,) = (each for each in map(Requirement, project["dependencies"]) if each.name == "mcp")
    assert asked.specifier.contains(importlib.metadata.version("mcp"))
    assert not asked.specifier.contains("1.28.0"), "names of version 1 are not those of version 2"
    assert not asked.specifier.contains("3.0.0")


def test_d43_results_have_the_names_of_version_2() -> None:
    from mcp.types import CallToolResult, Tool

    assert {"is_error", "structured_content"} <= CallToolResult.model_fields.keys()
    assert {"input_schema", "output_schema"} <= Tool.model_fields.keys()
