"""A record is one line with exactly the agreed fields, and comes back as it went in."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from results.entries import STATUSES, Entry
from results.errors import RecordInvalid
from results.record import RecordModel, encode_record, entry_of
from tests.unit.results.made_records import made_record

FIELDS = {
    "run_id", "job_id", "index", "attempt", "status", "messages", "tools", "tool_results", "usage", "model", "error",
    "seed", "started_at", "finished_at", "metadata",
}  # fmt: skip

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_the_line_has_exactly_the_fields_of_a_record() -> None:
    line = encode_record(made_record(3, error={"type": "budget", "message": "turns"}, status="failed"))
    record = orjson.loads(line)
    assert set(record) == FIELDS
    assert record["usage"] == {"input_tokens": 10, "output_tokens": 5, "model_calls": 2, "tool_calls": 1}
    assert line.endswith(b"}\n")


def test_encoded_parts_are_spliced_as_they_are() -> None:
    plain = made_record(1)
    spliced = made_record(
        1,
        messages=[orjson.dumps(message) for message in plain.messages],
        tools=orjson.dumps(plain.tools),
        tool_results=[orjson.dumps(result) for result in plain.tool_results],
    )
    assert encode_record(spliced) == encode_record(plain)


@pytest.mark.parametrize("status", STATUSES)
def test_e16_a_line_round_trips_through_the_model(status: str) -> None:
    line = encode_record(made_record(2, status=status))
    model = RecordModel.model_validate_json(line)
    assert orjson.loads(model.model_dump_json()) == orjson.loads(line)
    assert RecordModel.model_validate(model.model_dump()) == model


def test_the_model_refuses_what_is_no_record() -> None:
    record = orjson.loads(encode_record(made_record(2)))
    for bad in (record | {"extra": 1}, record | {"status": "completed"}, {"run_id": "run"}, record | {"index": -1}):
        with pytest.raises(ValidationError):
            RecordModel.model_validate(bad)


@given(metadata=st.dictionaries(st.text(), json_values, max_size=4), content=st.text())
def test_e16_e19_any_json_survives_the_line(metadata: dict[str, Any], content: str) -> None:
    record = made_record(0, metadata=metadata, messages=[{"role": "user", "content": content}])
    line = encode_record(record)
    assert line.count(b"\n") == 1
    read = orjson.loads(line)
    assert read["metadata"] == metadata
    assert read["messages"][0]["content"] == content


@pytest.mark.parametrize("value", [{1, 2}, "\ud800", 2**70, object()])
def test_a_value_that_is_not_json_is_refused_by_name(value: object) -> None:
    with pytest.raises(RecordInvalid, match="job-4"):
        encode_record(made_record(4, metadata={"value": value}))


def test_e16_an_encoded_part_with_a_newline_is_refused() -> None:
    with pytest.raises(RecordInvalid, match="newline"):
        encode_record(made_record(4, messages=[b'{\n  "role": "user"\n}']))


def test_the_entry_says_what_the_record_says() -> None:
    assert entry_of(made_record(9, attempt=3, status="dead")) == Entry(9, 3, "dead", 10, 5, 2, 1)


@pytest.mark.parametrize("bad", [{"status": "completed"}, {"index": -1}, {"attempt": 2**32}, {"tool_calls": -1}])
def test_an_entry_that_fits_no_row_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(RecordInvalid, match="job"):
        entry_of(made_record(bad.pop("index", 0), **bad)).packed()
