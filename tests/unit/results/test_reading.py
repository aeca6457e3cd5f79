"""Reading a run back: every job once, its smallest (attempt, key, line), in bounded memory."""

import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from results.errors import CorruptShard, ResultsError
from results.reading import (
    find_record,
    read_entries,
    read_lines,
    shard_keys,
    visible_entries,
    visible_lines,
    visible_records,
)
from results.record import Record, encode_record, entry_of
from results.store import Store, StoredObject, open_store
from tests.unit.results.made_records import made_record, put_shard


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path))


def test_a_run_without_shards_is_empty(store: Store) -> None:
    assert shard_keys(store, "run") == []
    assert list(visible_records(store, "run")) == []
    assert list(visible_entries(store, "run")) == []
    assert find_record(store, "run", index=0) is None
    assert find_record(store, "run", job_id="job-0") is None


def test_only_shards_of_this_run_are_read(store: Store) -> None:
    key = put_shard(store, [made_record(0)])
    put_shard(store, [made_record(1, run_id="run-2")], run_id="run-2")
    store.put("run/data/20251121T01/notes.txt", b"not a shard")
    store.put("run/data/readme", b"not a shard")
    assert shard_keys(store, "run") == [key]


def test_the_smallest_attempt_is_visible_whatever_its_key(store: Store) -> None:
    put_shard(store, [made_record(0, attempt=2, status="failed"), made_record(1)], sequence=0)
    put_shard(store, [made_record(0, attempt=1), made_record(1, attempt=3)], sequence=1)
    assert {row["index"]: (row["attempt"], row["status"]) for row in visible_records(store, "run")} == {
        0: (1, "ok"),
        1: (1, "ok"),
    }


def test_at_equal_attempts_the_smaller_key_and_then_the_smaller_line_is_visible(store: Store) -> None:
    put_shard(store, [made_record(0, metadata={"from": "second key"})], sequence=1)
    first = [made_record(0, metadata={"from": f"line {line}"}) for line in range(2)]
    put_shard(store, first, sequence=0)
    assert [row["metadata"] for row in visible_records(store, "run")] == [{"from": "line 0"}]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from([0, 1, 2, 65_535, 65_536, 2**40]), st.integers(0, 3)), min_size=1, max_size=6
        ),
        max_size=8,
    )
)
def test_every_job_is_visible_once_and_by_the_rule(
    tmp_path_factory: pytest.TempPathFactory, shards: list[list[tuple[int, int]]]
) -> None:
    store = open_store(str(tmp_path_factory.mktemp("results")))
    expected: dict[int, tuple[int, str, int]] = {}
    for sequence, places in enumerate(shards):
        records = [made_record(index, attempt=attempt, seed=line) for line, (index, attempt) in enumerate(places)]
        key = put_shard(store, records, sequence=sequence)
        for line, (index, attempt) in enumerate(places):
            expected[index] = min(expected.get(index, (99, "", 0)), (attempt, key, line))
    seen = Counter(row["index"] for row in visible_records(store, "run"))
    assert seen == Counter(dict.fromkeys(expected, 1))
    found_places = {row["index"]: (row["attempt"], row["seed"]) for row in visible_records(store, "run")}
    assert found_places == {index: (attempt, line) for index, (attempt, _, line) in expected.items()}
    assert {entry.index: entry.attempt for entry in visible_entries(store, "run")} == {
        index: place[0] for index, place in expected.items()
    }
    for index, (attempt, _, line) in expected.items():
        found = find_record(store, "run", index=index)
        assert found is not None
        assert (found["index"], found["attempt"], found["seed"]) == (index, attempt, line)


def test_the_entries_rebuild_what_the_records_say(store: Store) -> None:
    records = [made_record(index, status=status) for index, status in enumerate(["ok", "failed", "cancelled", "dead"])]
    put_shard(store, records)
    assert [*visible_entries(store, "run")] == [entry_of(row) for row in records]


def test_lines_are_handed_on_as_they_were_stored(store: Store) -> None:
    records = [made_record(index) for index in range(3)]
    put_shard(store, records)
    assert [line for line, _ in visible_lines(store, "run")] == [encode_record(row)[:-1] for row in records]


def test_a_record_is_found_by_index_and_by_job_id(store: Store) -> None:
    put_shard(store, [made_record(index, metadata={"mentions": "job-77"}) for index in range(5)], sequence=0)
    put_shard(store, [made_record(77, attempt=2), made_record(77, attempt=1)], sequence=1)
    assert find_record(store, "run", index=77) == find_record(store, "run", job_id="job-77")
    assert (find_record(store, "run", job_id="job-77") or {})["attempt"] == 1
    assert find_record(store, "run", job_id="job-7") is None
    with pytest.raises(ValueError, match="one of the two"):
        find_record(store, "run")


def test_a_damaged_shard_ends_the_reading_or_is_reported_and_passed_over(store: Store) -> None:
    keys = [put_shard(store, [made_record(number)], sequence=number) for number in range(3)]
    store.put(keys[0], store.get(keys[0])[:-5])  # the entries
    blob = store.get(keys[1])
    store.put(keys[1], blob[:30] + b"?????" + blob[35:])  # the data
    for reading in (visible_records, visible_entries):
        with pytest.raises(CorruptShard, match="000000-1"):
            list(reading(store, "run"))
    reported: list[CorruptShard] = []
    assert [row["index"] for row in visible_records(store, "run", on_corrupt=reported.append)] == [2]
    assert [str(error).split(":")[0] for error in reported] == [f"shard {keys[0]}", f"shard {keys[1]}"]


def test_a_shard_with_fewer_lines_than_entries_is_damaged(store: Store) -> None:
    long, short = (put_shard(store, [made_record(n) for n in range(2)], sequence=s) for s in range(2))
    one = put_shard(store, [made_record(0)], sequence=2)
    store.put(short, store.get(one)[: -13 - 29] + store.get(long)[-13 - 2 * 29 :])
    store.delete(long)
    store.delete(one)
    with pytest.raises(CorruptShard, match="1 lines, but entries for 2"):
        list(visible_records(store, "run"))


def test_a_key_that_is_no_shard_is_refused(store: Store) -> None:
    with pytest.raises(CorruptShard, match="not the key of a shard"):
        read_entries(store, "run/manifest.json")


def test_trouble_with_the_store_is_not_taken_for_damage(store: Store) -> None:
    class Failing:
        url = store.url

        def list(self, prefix: str = "") -> Iterator[StoredObject]:
            return store.list(prefix)

        def __getattr__(self, name: str) -> object:
            raise ResultsError("the store is gone")

    put_shard(store, [made_record(0)])
    with pytest.raises(ResultsError, match="the store is gone"):
        list(visible_records(Failing(), "run", on_corrupt=[].append))  # type: ignore[arg-type]


def test_reading_holds_only_places_and_a_few_shards_in_memory(store: Store) -> None:
    def shard(sequence: int) -> list[Record]:
        text = f"{sequence} and some words about the weather " * 100
        return [made_record(sequence * 500 + n, messages=[{"role": "user", "content": text}]) for n in range(500)]

    raw_bytes = 0
    for sequence in range(24):
        key = put_shard(store, shard(sequence), sequence=sequence)
        raw_bytes += sum(len(line) for line in read_lines(store, key))
    tracemalloc.start()
    seen = sum(1 for _ in visible_records(store, "run"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seen == 12_000
    assert raw_bytes > 40 << 20
    assert peak < 10 << 20
