"""`${VAR}`, `${VAR:-default}` and `file:` are resolved late, and no value ever shows (rule S11)."""

from pathlib import Path
from typing import Any

import pytest

from conversations.errors import RecipeInvalid
from conversations.references import (
    Reference,
    broken_references_in,
    has_reference,
    read_reference_file,
    references_in,
    resolve_references,
)

ENVIRONMENT = {"KEY": "sk-canary", "EMPTY": "", "ODD": "${KEY} file:/x"}


def unreadable(path: str) -> str:
    raise AssertionError(path)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("plain $KEY text", "plain $KEY text"),
        ("${KEY}", "sk-canary"),
        ("Bearer ${KEY}, ${KEY}", "Bearer sk-canary, sk-canary"),
        ("${NOPE:-http://localhost:8000/v1}", "http://localhost:8000/v1"),
        ("${EMPTY:-default}", "default"),
        ("${NOPE:-}", ""),
        ("${KEY:-default}", "sk-canary"),
        ("$${KEY}", "${KEY}"),
        ("$${KEY} ${KEY}", "${KEY} sk-canary"),
        ("${ODD}", "${KEY} file:/x"),
        (3, 3),
        ({"a": ["${KEY}"], "b": None}, {"a": ["sk-canary"], "b": None}),
        (("${KEY}",), ["sk-canary"]),
    ],
)
def test_references_are_replaced_by_their_values_once(written: Any, meant: Any) -> None:
    assert resolve_references(written, ENVIRONMENT, unreadable) == meant


def test_what_was_written_stays_as_it_was() -> None:
    written = {"a": ["${KEY}"]}
    resolve_references(written, ENVIRONMENT)
    assert written == {"a": ["${KEY}"]}


@pytest.mark.parametrize("name", ["NOPE", "EMPTY"])
def test_a_variable_that_is_not_set_is_an_error_that_names_it_and_its_place(name: str) -> None:
    with pytest.raises(RecipeInvalid) as caught:
        resolve_references({"headers": [{"x": f"${{KEY}} ${{{name}}}"}]}, ENVIRONMENT, at=("model",))
    assert str(caught.value) == (
        f"model.headers[0].x: the variable {name} is not set; set {name} where the workers run"
    )


@pytest.mark.parametrize("written", ["${}", "${1A}", "${A", "${A B}", "${A:=b}"])
def test_what_begins_no_reference_is_an_error(written: str) -> None:
    with pytest.raises(RecipeInvalid, match=r"model: `\$\{` begins no reference; write \$\{NAME\} or"):
        resolve_references(written, ENVIRONMENT, at=("model",))
    assert list(broken_references_in({"a": written})) == [("a",)]


def test_a_file_is_read_without_the_newline_at_its_end(tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("sk-canary\n")
    assert resolve_references({"api_key": f"file:{secret}"}, {}) == {"api_key": "sk-canary"}


def test_what_a_file_holds_is_not_resolved_again(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("${KEY}")
    assert resolve_references(f"file:{tmp_path}/key", ENVIRONMENT) == "${KEY}"


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (None, "No such file or directory"),
        (b"\xff\xfe", "it is not UTF-8 text"),
        (b"x" * 65_537, "longer than 65536 bytes"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_that_names_it(
    tmp_path: Path, content: bytes | None, cause: str
) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RecipeInvalid) as caught:
        resolve_references({"api_key": f"file:{path}"}, {}, at=("model",))
    assert str(caught.value) == f"model.api_key: cannot read the file '{path}': {cause}"


def test_a_home_folder_may_be_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "key").write_text("x")
    assert read_reference_file("~/key") == "x"


def test_references_are_found_with_their_places() -> None:
    found = references_in({"a": ["${KEY} ${B:-c}", "$${NO}"], "b": {"c": "file:/run/key"}, "d": 3})
    assert list(found) == [
        Reference(("a", 0), "variable", "KEY"),
        Reference(("a", 0), "variable", "B", "c"),
        Reference(("b", "c"), "file", "/run/key"),
    ]


def test_tool_definitions_are_data() -> None:
    block = {"registry": [{"type": "inline", "tools": [{"description": "expands ${HOME}"}], "note": "${KEY}"}]}
    resolved = resolve_references(block, ENVIRONMENT)
    assert resolved["registry"][0]["tools"] == [{"description": "expands ${HOME}"}]
    assert resolved["registry"][0]["note"] == "sk-canary"
    assert [reference.name for reference in references_in(block)] == ["KEY"]


def test_whether_a_value_hangs_on_a_reference() -> None:
    assert has_reference(["x", {"y": "a ${B}"}])
    assert has_reference("file:/x")
    assert not has_reference({"a": "profile:", "b": 1})


def test_sec_s16_a_megabyte_of_open_references_takes_no_longer_than_it_is() -> None:
    text = "${A:-" * 200_000
    assert list(references_in({"a": text})) == []
    assert list(broken_references_in({"a": text})) == [("a",)]


def test_a_default_holds_no_other_reference() -> None:
    assert list(broken_references_in({"a": "${A:-x${B}"})) == [("a",)]
    assert resolve_references({"a": "${A:-cost$5}"}, {}) == {"a": "cost$5"}
