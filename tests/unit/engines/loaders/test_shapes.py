"""The three shapes of a file of tools."""

from typing import Any

import pytest

from engines.errors import InvalidTool
from engines.loaders.shapes import tools_of

TOOL = {"name": "a"}
OWN = {"name": "b", "namespace": "own"}


@pytest.mark.parametrize(
    ("document", "namespace", "names"),
    [
        ({"file": [TOOL, OWN]}, None, ["file::a", "own::b"]),
        ({"file": [TOOL, OWN]}, "entry", ["entry::a", "own::b"]),
        ([TOOL, OWN], None, ["default::a", "own::b"]),
        ([TOOL, OWN], "entry", ["entry::a", "own::b"]),
        ({"a": {"description": "x"}, "b": OWN}, None, ["default::a", "own::b"]),
        ({"a": {"description": "x"}, "b": OWN}, "entry", ["entry::a", "own::b"]),
        ([], "entry", []),
    ],
)
def test_d72_shapes_and_whose_namespace_holds(document: Any, namespace: str | None, names: list[str]) -> None:
    assert [tool.qualified_name for tool in tools_of(document, namespace=namespace)] == names


def test_d73_every_namespace_of_a_file_is_read() -> None:
    names = [tool.qualified_name for tool in tools_of({"x": [TOOL], "y": [TOOL]}, namespace=None)]
    assert names == ["x::a", "y::a"]


@pytest.mark.parametrize("document", [None, {}, "text", {"a": [TOOL], "b": TOOL}, TOOL])
def test_anything_else_is_refused_with_the_shapes_there_are(document: Any) -> None:
    with pytest.raises(InvalidTool, match="holds no tools: it must be a list of tools"):
        tools_of(document, namespace=None)
