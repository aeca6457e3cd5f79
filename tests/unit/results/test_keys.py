"""The keys of a run's objects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.errors import InvalidKey
from results.keys import ShardName, check_run_id, check_writer, data_folder, manifest_key, part_key


def test_the_keys_of_a_run_lie_in_its_folder() -> None:
    assert manifest_key("run.1") == "run.1/manifest.json"
    assert part_key("run.1", 7) == "run.1/input/part-000007.jsonl.zst"
    assert data_folder("run.1") == "run.1/data"


@given(
    sealed_ms=st.integers(10**12, 10**13 - 1),
    writer=st.from_regex(r"[A-Za-z0-9._-]{1,40}", fullmatch=True),
    sequence=st.integers(0, 10**7),
    count=st.integers(1, 10**6),
)
def test_a_shard_key_round_trips(sealed_ms: int, writer: str, sequence: int, count: int) -> None:
    name = ShardName("run", sealed_ms, writer, sequence, count)
    assert ShardName.parse(name.key) == name


def test_the_hour_of_a_shard_is_utc() -> None:
    assert ShardName("r", 1_763_687_045_678, "w", 3, 12).key == "r/data/20251121T01/1763687045678-w-000003-12.jsonl.zst"


@pytest.mark.parametrize("key", ["run/manifest.json", "run/data/20251121T01/x.jsonl.zst", "", "run/data/a/b/c"])
def test_another_key_is_no_shard(key: str) -> None:
    assert ShardName.parse(key) is None


def test_names_that_do_not_fit_into_a_key_are_refused() -> None:
    assert check_run_id("A-z_0.9") == "A-z_0.9"
    for bad in ("a/b", "", "a b", "x" * 201):
        with pytest.raises(InvalidKey, match="writer"):
            check_writer(bad)
