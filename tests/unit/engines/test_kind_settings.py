"""What every kind of engine is given: faults with their tools, a cache that tells accounts apart."""

from typing import Any

import pytest

from engines.errors import ConfigurationInvalid
from engines.kind_settings import EngineParts, EngineSettings
from engines.registry import ToolRegistry
from engines.tool import Tool
from engines.toolset import CacheSettings, Toolset
from tests.unit.engines.stage import no_speak

TOOLSETS = (
    Toolset("w", None, (Tool("read", "w"), Tool("write", "w"))),
    Toolset("other", None, (Tool("ask", "other"),)),
)


def contract(*faults: dict[str, Any], toolsets: tuple[Toolset, ...] = TOOLSETS[:1], **settings: Any) -> dict[str, Any]:
    written = {"type": "x", "error_categories": list(faults), **settings}
    parts = EngineParts("e", written, toolsets, ToolRegistry(TOOLSETS), no_speak, no_engine)
    return parts.contract(EngineSettings.model_validate({"type": "x", "error_categories": list(faults)}))


def no_engine(name: str, _at: object) -> Any:
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["w::*"], ("w::read", "w::write")),
        (["w::write"], ("w::write",)),
        (["read", "w::write"], ("w::read", "w::write")),
    ],
)
def test_a_fault_is_for_the_tools_that_its_patterns_name(patterns: list[str], names: tuple[str, ...]) -> None:
    (category,) = contract({"type": "outage", "probability": 1, "tools": patterns})["error_categories"]
    assert (category.tools, category.told) == (names, "Service unavailable")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("w::raed", r"tools\.engines\.e\.error_categories\[1\]: tools: no tool 'w::raed'; did you mean 'w::read'"),
        ("other::ask", r"tools\.engines\.e\.error_categories\[1\]: tools: other::ask is not answered by engine 'e'"),
    ],
)
def test_a_fault_of_tools_that_are_not_there_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=message):
        contract({"type": "x", "probability": 0}, {"type": "x", "probability": 1, "tools": [pattern]})


def test_a_cache_is_told_which_backend_and_account_it_is_for() -> None:
    cached = (Toolset("w", None, TOOLSETS[0].tools, cache=CacheSettings()),)
    scopes = [contract(toolsets=cached, bearer_token=token)["cache_scope"] for token in ("a", "a", "b")]
    assert scopes[0] == scopes[1] != scopes[2]
    assert "bearer" not in scopes[0]
    assert contract(bearer_token="a")["cache_scope"] == ""
