"""Compiled schemas: what they say, what they refuse to fetch."""

from pathlib import Path

import pytest

from engines.errors import InvalidTool
from engines.schemas import checked_schema, compiled, problems

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def test_problems_name_path_and_cause() -> None:
    nested = {"type": "object", "properties": {"stops": {"type": "array", "items": CITY}}}
    said = problems(compiled(nested), {"stops": [{"city": "Rome"}, {"city": 7}]})
    assert said == 'stops[1].city: 7 is not of type "string"'
    assert problems(compiled(CITY), {"city": "Rome"}) == ""


def test_many_and_long_problems_are_shortened() -> None:
    numbers = {"type": "array", "items": {"type": "integer"}}
    said = problems(compiled(numbers), ["x" * 1000] * 9)
    assert said.endswith("; and 4 more")
    assert len(said) < 2000


def test_what_is_no_json_is_a_problem_not_a_crash() -> None:
    assert "object" in problems(compiled(CITY), {"city": object()})


def test_a_reference_outside_the_schema_is_refused_and_not_fetched(tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text('{"type": "string"}')
    for reference in ("http://localhost:1/schema.json", (tmp_path / "text.json").as_uri()):
        with pytest.raises(InvalidTool, match=r"is not fetched; copy it under \$defs"):
            compiled({"type": "object", "properties": {"x": {"$ref": reference}}})
    with pytest.raises(InvalidTool, match="retrieving it failed"):
        compiled({"type": "object", "properties": {"x": {"$ref": "other.json"}}})


def test_a_broken_schema_is_named() -> None:
    with pytest.raises(InvalidTool, match=r"tool 'a': not a usable JSON Schema: properties\.x\.type"):
        checked_schema({"properties": {"x": {"type": "float"}}}, of="tool 'a'")


def test_local_references_and_older_drafts_work() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"n": {"type": "integer"}},
        "properties": {"n": {"$ref": "#/definitions/n"}},
    }
    assert problems(compiled(schema), {"n": "x"}) != ""


def test_formats_are_notes_in_every_draft() -> None:
    for draft in ("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"):
        schema = {"$schema": draft, "properties": {"day": {"type": "string", "format": "date"}}}
        assert problems(compiled(schema), {"day": "tomorrow"}) == ""


def test_equal_schemas_are_compiled_once() -> None:
    assert compiled({"type": "object", "title": "x"}) is compiled({"title": "x", "type": "object"})
