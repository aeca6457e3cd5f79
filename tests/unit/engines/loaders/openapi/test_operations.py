"""Which operations a document has, and the tools they become."""

from collections.abc import Callable
from typing import Any

import pytest

from engines.calling.prepared import is_idempotent, is_read_only
from engines.errors import ConfigurationInvalid
from engines.loaders.openapi.operations import operations_of
from engines.loaders.openapi.references import Document
from engines.tool import Tool

ToolsOf = Callable[..., dict[str, Tool]]
ToolOf = Callable[..., Tool]


def document(paths: dict[str, Any], **root: Any) -> dict[str, Any]:
    return {"openapi": "3.1.0", "paths": paths, **root}


def test_d50_the_five_methods_are_operations_and_nothing_else_is(tools_of: ToolsOf) -> None:
    methods = ("get", "post", "put", "patch", "delete", "head", "options", "trace", "parameters", "x-a", "summary")
    path_item: dict[str, Any] = {method: {} if method != "parameters" else [] for method in methods}

    tools = tools_of(document({"/x": path_item, "x-paths": {"get": {}}}))

    assert list(tools) == ["get_x", "post_x", "put_x", "patch_x", "delete_x"]
    assert [tool.metadata["rest_method"] for tool in tools.values()] == ["GET", "POST", "PUT", "PATCH", "DELETE"]


def test_d51_an_operation_without_parameters_is_loaded(tools_of: ToolsOf) -> None:
    tool = tools_of(document({"/ping": {"get": {}}}))["get_ping"]

    assert tool.parameters == {"type": "object", "properties": {}}
    assert tool.metadata == {
        "rest_method": "GET",
        "rest_path": "/ping",
        "rest_param_locations": {},
        "rest_parameters": {},
    }


def test_d50_operations_of_one_name_are_told_apart_whichever_are_loaded(tools_of: ToolsOf) -> None:
    paths = {
        "/a": {"get": {"operationId": "find"}},
        "/b": {"get": {"operationId": "find"}, "put": {"operationId": "p"}},
    }

    assert [tool.metadata["rest_path"] for tool in tools_of(document(paths)).values()] == ["/a", "/b", "/b"]
    assert tools_of(document(paths)).keys() == {"find", "find_2", "p"}
    assert tools_of(document(paths), operation_ids=["find_2"]).keys() == {"find_2"}
    assert tools_of(document(paths), operation_ids=["find"]).keys() == {"find", "find_2"}


def test_a_path_item_by_reference_is_resolved(tools_of: ToolsOf) -> None:
    tools = tools_of(
        document({"/a": {"$ref": "#/components/pathItems/A"}}, components={"pathItems": {"A": {"get": {}}}})
    )

    assert tools.keys() == {"get_a"}


def test_a_path_item_that_leads_nowhere_is_an_error(tools_of: ToolsOf) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"paths\./a: '\./a\.yaml' lies outside the document"):
        tools_of(document({"/a": {"$ref": "./a.yaml"}}))


@pytest.mark.parametrize(
    ("written", "description"),
    [
        ({"summary": "Find pets", "description": "By their name."}, "Find pets\nBy their name."),
        ({"summary": "Find pets"}, "Find pets"),
        ({}, "GET /x"),
        ({"summary": "", "description": 7}, "GET /x"),
    ],
)
def test_a_tool_says_what_it_does(tool_of: ToolOf, written: dict[str, Any], description: str) -> None:
    assert tool_of(written, method="get", path="/x").description == description


def test_sec_s9_a_long_description_is_capped(tool_of: ToolOf) -> None:
    tool = tool_of({"description": "word " * 100_000})

    assert len(tool.description) <= 1024
    assert tool.description.endswith("…")


def test_d59_the_method_says_what_may_be_asked_twice(tools_of: ToolsOf) -> None:
    tools = tools_of(document({"/x": {method: {} for method in ("get", "post", "put", "patch", "delete")}}))

    assert {name for name, tool in tools.items() if is_read_only(tool)} == {"get_x"}
    assert {name for name, tool in tools.items() if is_idempotent(tool)} == {"get_x", "put_x", "delete_x"}


def test_servers_of_an_operation_and_of_a_path_win(tools_of: ToolsOf) -> None:
    own = {"servers": [{"url": "https://own.example"}]}
    paths = {
        "/a": {"get": own, "put": {}, "servers": [{"url": "https://path.example"}]},
        "/b": {"get": {}},
    }

    tools = tools_of(document(paths, servers=[{"url": "https://root.example/v1"}]))

    assert {name: tool.metadata["rest_base_url"] for name, tool in tools.items()} == {
        "get_a": "https://own.example",
        "put_a": "https://path.example",
        "get_b": "https://root.example/v1",
    }
    assert {tool.metadata["rest_base_from"] for tool in tools.values()} == {"document"}


def test_what_the_document_says_of_an_operation_is_noted(tool_of: ToolOf) -> None:
    tool = tool_of({"operationId": "an id", "tags": ["pets", 7], "deprecated": True})

    assert tool.name == "an_id"
    assert tool.metadata["rest_operation_id"] == "an id"
    assert tool.metadata["rest_tags"] == ["pets"]
    assert tool.metadata["deprecated"] is True


def test_what_is_no_operation_is_passed_over() -> None:
    paths: dict[str, Any] = {"/a": None, "/b": {"get": "text"}, "/c": {"get": {}}, "d": {"get": {}}}

    assert [each.place for each in operations_of(Document(document(paths)))] == ["GET /c"]
    assert operations_of(Document({"openapi": "3.1.0", "paths": []})) == []


def test_every_operation_of_a_broken_document_that_is_sound_can_be_loaded(tools_of: ToolsOf) -> None:
    broken = {"get": {"operationId": "broken", "parameters": [{"$ref": "#/gone"}]}, "put": {"operationId": "sound"}}

    assert tools_of(document({"/a": broken}), operation_ids=["sound"]).keys() == {"sound"}
    with pytest.raises(ConfigurationInvalid, match=r"GET /a: '#/gone' names nothing .*name the operations to load"):
        tools_of(document({"/a": broken}))
