"""A corpus in a file."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from engines.errors import ConfigurationInvalid
from engines.search.file import CorpusUnreadable
from tests.unit.engines.search.searches import CORPUS, engine_of, ids_of, result_of


def written(path: Path, text: str) -> dict[str, Any]:
    path.write_text(text)
    return {"type": "search/file", "path": str(path)}


def lines(records: list[dict[str, Any]]) -> str:
    return "\n".join(json.dumps(record) for record in records) + "\n\n"


async def test_d84_a_file_of_lines_and_a_file_of_one_list_are_searched_alike(tmp_path: Path) -> None:
    one = written(tmp_path / "c.jsonl", lines(CORPUS))
    other = written(tmp_path / "c.json", json.dumps(CORPUS))
    third = {**written(tmp_path / "c.txt", json.dumps(CORPUS)), "format": "json"}
    for settings in (one, other, third):
        assert await ids_of(settings, {"query": "cats"}) == ["cats", "dogs"]


async def test_d84_a_projection_says_which_field_is_which(tmp_path: Path) -> None:
    record = {"key": 7, "content": "Oslo is a city", "headline": "Norway", "id": "own", "text": "unused"}
    settings = written(tmp_path / "c.jsonl", lines([record]))
    projection = {"content": "text", "headline": "title", "key": "id"}
    (document,) = (await result_of({**settings, "projection": projection}, {"query": "Norway"})).result
    assert (document["id"], document["text"], document["metadata"]) == ("7", "Oslo is a city", {"title": "Norway"})


async def test_other_usual_names_need_no_projection_and_an_id_is_made_where_there_is_none(tmp_path: Path) -> None:
    settings = written(tmp_path / "c.jsonl", lines([{"doc_id": "x", "body": "Oslo"}, {"text": {"city": "Oslo"}}]))
    documents = (await result_of(settings, {"query": "Oslo"})).result
    assert [(document["id"], document["text"]) for document in documents] == [("x", "Oslo"), ("2", '{"city":"Oslo"}')]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.jsonl", '{"id": 1}\n\n{"id": ', r"c\.jsonl:3: not JSON"),
        ("c.jsonl", '{"id": 1}\n[1]', r"c\.jsonl:2: a record is an object, got list"),
        ("c.json", "{}", r"c\.json: a \.json corpus is a list of records, got dict"),
        ("c.json", "[1]", r"c\.json:1: a record is an object, got int"),
        ("c.json", "[", r"c\.json: not JSON"),
    ],
)
async def test_a_file_that_cannot_be_used_fails_the_session_and_says_where(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(CorpusUnreadable, match=message):
        await result_of(written(tmp_path / name, text), {"query": "x"})


async def test_a_file_larger_than_allowed_is_not_read(tmp_path: Path) -> None:
    settings = {**written(tmp_path / "c.jsonl", lines(CORPUS)), "max_bytes": 10}
    with pytest.raises(CorpusUnreadable, match="more than max_bytes"):
        await result_of(settings, {"query": "x"})


async def test_a_file_that_is_gone_by_then_fails_the_session(tmp_path: Path) -> None:
    settings = written(tmp_path / "c.jsonl", lines(CORPUS))
    engine = engine_of(settings)
    (tmp_path / "c.jsonl").unlink()
    with pytest.raises(CorpusUnreadable, match="cannot be read: No such file"):
        await engine.setup("session")


async def test_a_relative_path_is_looked_for_where_modules_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "c.jsonl", lines(CORPUS))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert await ids_of({"type": "search/file", "path": "c.jsonl"}, {"query": "Rome"}) == ["rome"]


def test_a_file_that_is_nowhere_is_an_error_when_the_engine_is_built() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"tools\.engines\.s\.path: no file 'gone\.jsonl' here"):
        engine_of({"type": "search/file", "path": "gone.jsonl"})
