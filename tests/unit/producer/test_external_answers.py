"""Answers in the shapes that people write them in, and an error for every other."""

import json
from typing import Any

import pytest

from producer.errors import InputInvalid, ResultInvalid
from producer.external_answers import entries_of, read_answers_text

ENTRY = {"call_id": "a", "result": 1}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "b": {"x": null}}',
        '[{"call_id": "a", "result": 1}, {"call_id": "b", "result": {"x": null}}]',
        '{"call_id": "a", "result": 1}\n\n{"call_id": "b", "result": {"x": null}, "error": null}\n',
    ],
    ids=["an object", "a list", "lines"],
)
def test_results_may_be_an_object_a_list_or_lines(text: str) -> None:
    assert read_answers_text(text, "f") == {"a": {"result": 1}, "b": {"result": {"x": None}}}


def test_a_single_entry_is_a_list_of_one() -> None:
    assert read_answers_text('{"call_id": "a", "error": "no"}', "f") == {"a": {"error": "no"}}
    assert entries_of(ENTRY) == entries_of([ENTRY]) == {"a": {"result": 1}}


def test_a_null_result_is_one() -> None:
    assert read_answers_text('{"a": null}', "f") == {"a": {"result": None}}
    assert read_answers_text('[{"call_id": "a", "result": null}]', "f") == {"a": {"result": None}}


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"call_id": "a"}, "either a result or an error"),
        ({"call_id": "a", "result": 1, "error": "no"}, "either a result or an error"),
        ({"call_id": "a", "error": ""}, "a text for the model"),
        ({"call_id": "a", "error": {"code": 3}}, "a text for the model"),
        ({"call_id": "a", "output": 1}, "unknown key 'output'"),
        ({"call_id": 7, "result": 1}, "call_id"),
        ({"result": 1}, "call_id"),
        ("text", "call_id"),
    ],
)
def test_an_entry_that_is_none_is_named(entry: Any, told: str) -> None:
    with pytest.raises(ResultInvalid, match=told) as refused:
        read_answers_text(json.dumps([ENTRY | {"call_id": "b"}, entry]), "answers.json")
    assert str(refused.value).startswith("answers.json: answer 2")


def test_a_call_is_answered_once_a_file() -> None:
    with pytest.raises(ResultInvalid, match="answered twice"):
        entries_of([ENTRY, ENTRY])


@pytest.mark.parametrize("text", ["", "nonsense", '{"a": 1', '{"a": 1, "a": 2}', '"text"', "[1, 2", '{"a": NaN}'])
def test_what_is_no_json_is_said_with_its_place(text: str) -> None:
    with pytest.raises(InputInvalid, match=r"^f"):
        read_answers_text(text, "f")


def test_a_broken_line_is_named_by_its_number() -> None:
    with pytest.raises(InputInvalid, match=r"^f:2: "):
        read_answers_text('{"call_id": "a", "result": 1}\n{"call_id": "b", ', "f")
