"""The draw of tools by a job's seed."""

import os
import subprocess
import sys

import pytest

from engines.errors import ConfigurationInvalid
from engines.registry import ToolRegistry
from engines.samplers.random import draw
from engines.tool import Tool
from engines.toolset import Toolset


def made_registry() -> ToolRegistry:
    many = tuple(Tool(f"t{number}", "many") for number in range(30))
    overload = Tool("t0", "many", parameters={"type": "object", "properties": {"x": {}}})
    return ToolRegistry([Toolset("many", None, (*many, overload)), Toolset("few", None, (Tool("a", "few"),))])


def test_the_same_seed_draws_the_same_tools_and_another_others() -> None:
    first, again, other = (draw(made_registry(), 8, None, seed) for seed in (1, 1, 2))
    assert first == again != other


def test_any_process_draws_the_same() -> None:
    code = (
        "from tests.unit.engines.samplers.test_random import made_registry\n"
        "from engines.samplers.random import draw\n"
        "print([tool.qualified_name for tool in draw(made_registry(), 8, None, 7)])"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str([tool.qualified_name for tool in draw(made_registry(), 8, None, 7)])


def test_d81_k_means_exactly_k_different_names() -> None:
    drawn = draw(made_registry(), 31, None, 3)
    assert len({tool.qualified_name for tool in drawn}) == 31
    with pytest.raises(ConfigurationInvalid, match=r"tools\.sample\.k: 32 tools asked for, 31 in the registry"):
        draw(made_registry(), 32, None, 3)


def test_d83_a_namespace_is_a_hard_filter() -> None:
    assert [tool.qualified_name for tool in draw(made_registry(), 1, "few", 3)] == ["few::a"]
    assert draw(list(made_registry()), 1, "few", 3) == draw(made_registry(), 1, "few", 3)
    with pytest.raises(ConfigurationInvalid, match="0 in namespace 'none'"):
        draw(made_registry(), 1, "none", 3)
