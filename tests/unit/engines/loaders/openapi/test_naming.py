"""Names of tools, arguments and definitions."""

import pytest

from engines.loaders.openapi.naming import argument_name, definition_name, tool_name, unique


@pytest.mark.parametrize(
    ("operation_id", "method", "path", "name"),
    [
        ("getPet", "get", "/pets/{id}", "getPet"),
        ("issues/list-for-repo", "get", "/x", "issues/list-for-repo"),
        ("get a pet\n\u200bnow", "get", "/x", "get_a_pet_now"),
        ("pets::get", "get", "/x", "pets_get"),
        ("::", "get", "/x", "get_x"),
        ("_private_", "get", "/x", "_private_"),
        (None, "get", "/pets/{petId}/toys", "get_pets_petId_toys"),
        ("", "delete", "/v1/some-pets.json", "delete_v1_some-pets_json"),
        (None, "get", "/", "get"),
        (None, "PATCH", "/Größe", "patch_Gr_e"),
    ],
)
def test_d50_a_tool_is_named_by_its_operation_id_else_by_method_and_path(
    operation_id: str | None, method: str, path: str, name: str
) -> None:
    assert tool_name(operation_id, method, path) == name


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("id", "id"),
        ("X-Request-ID", "X-Request-ID"),
        ("_private", "_private"),
        ("a.b", "a.b"),
        ("filter[age]", "filter_age"),
        ("$filter", "filter"),
        ("größe", "gr_e"),
        ("日本", "query"),
        ("x" * 100, "x" * 64),
    ],
)
def test_an_argument_has_a_name_that_providers_take(name: str, argument: str) -> None:
    assert argument_name(name, "query", set()) == argument


def test_arguments_of_one_name_are_told_apart_by_their_place() -> None:
    assert argument_name("id", "body", {"id"}) == "body_id"
    assert argument_name("id", "body", {"id", "body_id"}) == "body_id_2"


def test_names_are_made_alone() -> None:
    assert unique("a", set()) == "a"
    assert unique("a", {"a", "a_2"}) == "a_3"
    assert definition_name("#/components/schemas/Pet", set()) == "Pet"
    assert definition_name("#/components/schemas/a~1b c", {"a_1b_c"}) == "a_1b_c_2"
