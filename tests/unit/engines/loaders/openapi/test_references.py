"""Local references, and the refusal of all others."""

import pytest

from engines.errors import InvalidTool
from engines.loaders.openapi.references import Document

DOCUMENT = Document(
    {
        "openapi": "3.0.0",
        "paths": {"/a/{b}": {"get": {"responses": {}}}},
        "components": {"x": {"a b": 1, "c~d": [10, 20]}, "one": {"$ref": "#/components/two"}, "two": {"is": "two"}},
        "circle": {"a": {"$ref": "#/circle/b"}, "b": {"$ref": "#/circle/a"}},
    }
)


@pytest.mark.parametrize(
    ("reference", "part"),
    [
        ("#/paths/~1a~1{b}/get", {"responses": {}}),
        ("#/paths/~1a~1%7Bb%7D/get", {"responses": {}}),
        ("#/components/x/a%20b", 1),
        ("#/components/x/c~0d/1", 20),
        ("#", DOCUMENT.root),
    ],
)
def test_d52_a_json_pointer_names_a_part(reference: str, part: object) -> None:
    assert DOCUMENT.part(reference) == part


def test_d52_references_to_references_are_followed() -> None:
    assert DOCUMENT.resolved({"$ref": "#/components/one"}) == {"is": "two"}
    assert DOCUMENT.resolved({"plain": 1}) == {"plain": 1}


@pytest.mark.parametrize(
    ("reference", "cause"),
    [
        ("#/components/three", "'#/components/three' names nothing in the document"),
        ("#/components/x/c~0d/2", "names nothing"),
        ("#/circle/a", "refers to itself"),
        (7, r"a \$ref is text, got int"),
    ],
)
def test_d52_a_reference_that_leads_nowhere_is_an_error(reference: object, cause: str) -> None:
    with pytest.raises(InvalidTool, match=cause):
        DOCUMENT.resolved({"$ref": reference})


@pytest.mark.parametrize(
    "reference", ["other.yaml#/a", "http://169.254.169.254/a.json", "file:///etc/passwd", "../../etc/passwd"]
)
def test_sec_s7_a_reference_out_of_the_document_is_never_fetched(reference: str) -> None:
    with pytest.raises(InvalidTool, match="lies outside the document and is not read; bundle it"):
        DOCUMENT.resolved({"$ref": reference})


@pytest.mark.parametrize(("version", "count"), [("3.0.3", False), ("3.1.0", True), ("3.1.1", True)])
def test_keywords_beside_a_reference_count_from_version_31_on(version: str, count: bool) -> None:
    assert Document({"openapi": version}).siblings_count is count


def test_keywords_beside_a_reference_do_not_count_in_swagger() -> None:
    assert not Document({"swagger": "2.0"}).siblings_count
