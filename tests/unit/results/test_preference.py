"""Preference pairs of forked conversations."""

from pathlib import Path
from typing import Any

import orjson

from results.exports.preference import export_lines, with_parents
from results.record import Record, encode_record
from results.store import open_store
from tests.unit.results.made_records import made_record, put_shard

PROMPT = [{"role": "user", "content": "How warm is it?"}]


def said(text: str) -> list[dict[str, Any]]:
    return [*PROMPT, {"role": "assistant", "content": text}]


def forked(index: int, text: str, **changes: Any) -> Record:
    fork = {"run": "parent", "job": "p", "index": 4, "turn": 0, "messages": 1, "number": index}
    score = changes.pop("score", None)
    checks = {} if score is None else {"checks": {"judge": {"score": score}}}
    fields = {"run_id": "forks", "messages": said(text), "metadata": {"fork": fork, **checks}}
    return made_record(index, **(fields | changes))


def rejected(check: str = "length") -> dict[str, Any]:
    return {"status": "failed", "error": {"type": f"rejected:{check}", "message": "too short"}}


def pairs(*records: Record) -> list[tuple[str, str]]:
    lines = [orjson.loads(line) for line in export_lines(orjson.loads(encode_record(each)) for each in records)]
    assert all(line["prompt"] == PROMPT for line in lines)
    return [(line["chosen"][0]["content"], line["rejected"][0]["content"]) for line in lines]


def test_what_is_ok_is_better_than_what_a_check_rejected() -> None:
    assert pairs(forked(0, "good"), forked(1, "bad", **rejected()), forked(2, "worse", **rejected())) == [
        ("good", "bad"),
        ("good", "worse"),
    ]


def test_more_points_of_a_judge_are_better() -> None:
    assert pairs(forked(0, "fair", score=6), forked(1, "best", score=9), forked(2, "as good", score=9)) == [
        ("best", "fair")
    ]


def test_equal_continuations_and_equal_ranks_are_no_pair() -> None:
    assert pairs(forked(0, "good"), forked(1, "also good")) == []
    assert pairs(forked(0, "good"), forked(1, "good", **rejected())) == []
    assert pairs(forked(0, "good"), forked(1, "bad", **rejected()), forked(2, "bad", **rejected())) == [("good", "bad")]


def test_the_same_calls_under_other_ids_are_no_pair() -> None:
    def calling(call_id: str) -> list[dict[str, Any]]:
        call = {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}
        answer = {"role": "tool", "tool_call_id": call_id, "content": "1"}
        return [*PROMPT, {"role": "assistant", "content": None, "tool_calls": [call]}, answer]

    assert pairs(forked(0, "", messages=calling("a")), forked(1, "", messages=calling("b"), **rejected())) == []


def test_what_failed_for_reasons_of_others_says_nothing_of_the_model() -> None:
    away = {"status": "failed", "error": {"type": "model_unavailable", "message": "away"}}
    endless = {"status": "failed", "error": {"type": "max_turns", "message": "no final answer"}}
    records = [forked(0, "good"), forked(1, "cut", **away), forked(2, "x", status="dead"), forked(3, "on", **endless)]
    assert pairs(*records) == [("good", "on")]


def test_each_forked_turn_has_pairs_of_its_own() -> None:
    other = {"run": "parent", "job": "q", "index": 5, "turn": 0, "messages": 1, "number": 0}
    records = [forked(0, "good"), forked(1, "bad", **rejected(), metadata={"fork": other})]
    assert pairs(*records) == []


def test_the_parents_own_continuation_takes_part(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    parent = made_record(4, run_id="parent", messages=said("first try"), **rejected())
    put_shard(store, [made_record(3, run_id="parent"), parent], run_id="parent")
    records = [orjson.loads(encode_record(forked(number, f"try {number}"))) for number in (0, 1)]
    lines = [orjson.loads(line) for line in export_lines(with_parents(store, records))]
    assert [(line["chosen"][0]["content"], line["rejected"][0]["content"]) for line in lines] == [
        ("try 0", "first try")
    ]
    assert lines[0]["tools"] == records[0]["tools"]


def test_a_parent_that_is_gone_is_done_without(tmp_path: Path) -> None:
    records = [orjson.loads(encode_record(forked(0, "good")))]
    assert list(with_parents(open_store(str(tmp_path)), records)) == records


def test_records_that_are_no_forks_give_no_pairs() -> None:
    assert pairs(made_record(0), made_record(1, **rejected())) == []
