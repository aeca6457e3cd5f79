"""The shard writer: nothing counts as written before it is durable, whatever the store does."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from results.errors import RecordInvalid, ShardNotWritten, SinkClosed
from results.keys import ShardName
from results.reading import read_entries, read_lines, shard_keys, visible_records
from results.shards import ShardWriter
from results.store import AsyncStore, open_store
from tests.unit.results.fault_store import Fault, FaultStore
from tests.unit.results.made_records import made_line

NEVER_SECONDS = 3600.0


@pytest.fixture
def store(tmp_path: Path) -> FaultStore:
    return FaultStore(open_store(str(tmp_path / "results")))


@pytest.fixture
async def threaded(store: FaultStore) -> AsyncIterator[AsyncStore]:
    async with AsyncStore(store) as opened:
        yield opened
        store.release.set()


def writer_of(threaded: AsyncStore, **options: Any) -> ShardWriter:
    defaults: dict[str, Any] = {"writer": "w", "linger_seconds": NEVER_SECONDS, "backoff_seconds": 0.0}
    return ShardWriter(threaded, "run", **(defaults | options))


def stored_indices(store: FaultStore) -> list[int]:
    return sorted(entry.index for key in shard_keys(store, "run") for entry in read_entries(store, key))


async def begun(*tasks: "asyncio.Task[str]") -> None:
    """Let tasks run until they wait."""
    for _ in range(5):
        await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)


def writing(writer: ShardWriter, index: int, **changes: Any) -> "asyncio.Task[str]":
    return asyncio.create_task(writer.write(*made_line(index, **changes)))


# --- what write() promises ---------------------------------------------------------------------------------------


async def test_a_record_is_durable_when_write_returns(store: FaultStore, threaded: AsyncStore) -> None:
    async with writer_of(threaded, others=lambda: 0) as writer:
        line, entry = made_line(3)
        key = await writer.write(line, entry)
        assert read_entries(store, key) == [entry]
        assert list(read_lines(store, key)) == [line[:-1]]


async def test_write_does_not_return_while_the_put_hangs(store: FaultStore, threaded: AsyncStore) -> None:
    store.then = Fault.HANG
    async with writer_of(threaded, others=lambda: 0) as writer:
        task = writing(writer, 0)
        await asyncio.to_thread(store.hanging.wait, 30)
        await begun(task)
        assert stored_indices(store) == []
        store.release.set()
        await task
        assert stored_indices(store) == [0]


async def test_encoding_and_upload_happen_in_threads(store: FaultStore, threaded: AsyncStore) -> None:
    async with writer_of(threaded, others=lambda: 0) as writer:
        await writer.write(*made_line(0))
    assert threading.get_ident() not in store.threads


async def test_a_cancelled_caller_does_not_cancel_the_shard(store: FaultStore, threaded: AsyncStore) -> None:
    async with writer_of(threaded) as writer:
        tasks = [writing(writer, 0), writing(writer, 1)]
        await begun(*tasks)
        tasks[0].cancel()
        await writer.flush()
        assert await tasks[1] == shard_keys(store, "run")[0]
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
    assert stored_indices(store) == [0, 1]


async def test_a_record_that_is_no_line_is_refused_and_spoils_nothing(store: FaultStore, threaded: AsyncStore) -> None:
    line, entry = made_line(1)
    async with writer_of(threaded) as writer:
        good = writing(writer, 0)
        await begun(good)
        for bad in (b"", b"\n", line[:-1], line + line, b"{}\n{}"):
            with pytest.raises(RecordInvalid, match="job 1"):
                await writer.write(bad, entry)
        await writer.flush()
        await good
    assert stored_indices(store) == [0]


# --- when a shard is sealed --------------------------------------------------------------------------------------


async def test_neighbours_share_a_shard_after_the_linger(store: FaultStore, threaded: AsyncStore) -> None:
    async with writer_of(threaded, linger_seconds=0.01) as writer:
        keys = await asyncio.gather(*(writer.write(*made_line(index)) for index in range(20)))
    assert len(set(keys)) == 1
    assert [entry.index for entry in read_entries(store, keys[0])] == list(range(20))


async def test_a_full_shard_is_sealed_at_once(store: FaultStore, threaded: AsyncStore) -> None:
    async with writer_of(threaded, max_records=3) as writer:
        keys = await asyncio.gather(*(writer.write(*made_line(index)) for index in range(6)))
    assert [len(read_entries(store, key)) for key in sorted(set(keys))] == [3, 3]


async def test_a_shard_is_sealed_by_its_bytes(store: FaultStore, threaded: AsyncStore) -> None:
    nbytes = len(made_line(0)[0])
    async with writer_of(threaded, max_bytes=nbytes * 2) as writer:
        keys = await asyncio.gather(*(writer.write(*made_line(index)) for index in range(4)))
    assert len(set(keys)) == 2


async def test_the_last_record_of_a_process_waits_for_nobody(threaded: AsyncStore) -> None:
    left = [2]
    async with writer_of(threaded, others=lambda: left[0]) as writer:
        first = writing(writer, 0)
        await begun(first)
        left[0] = 0
        second = writing(writer, 1)
        assert await first == await second


async def test_the_key_tells_when_who_and_how_many(threaded: AsyncStore) -> None:
    options: dict[str, Any] = {
        "writer": "pod-7",
        "token": "abc",
        "clock": lambda: 1_763_687_045.678,
        "others": lambda: 0,
    }
    async with writer_of(threaded, **options) as writer:
        first = await writer.write(*made_line(0))
        second = await writer.write(*made_line(1))
    assert first == "run/data/20251121T01/1763687045678-pod-7.abc-000000-1.jsonl.zst"
    assert second == "run/data/20251121T01/1763687045678-pod-7.abc-000001-1.jsonl.zst"


async def test_two_lives_of_one_writer_never_share_a_key(store: FaultStore, threaded: AsyncStore) -> None:
    for index in range(2):
        async with writer_of(threaded, clock=lambda: 1_763_687_045.0, others=lambda: 0) as writer:
            await writer.write(*made_line(index))
    assert stored_indices(store) == [0, 1]


# --- when the store fails ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
async def test_f13_a_failed_put_is_repeated_with_the_same_key_and_bytes(
    store: FaultStore, threaded: AsyncStore, fault: Fault
) -> None:
    store.faults = ()
    store._script = iter([fault, fault, Fault.NONE])
    async with writer_of(threaded, others=lambda: 0) as writer:
        key = await writer.write(*made_line(5))
        assert writer.statistics().last_error is None
    assert len(set(store.puts)) == 1
    assert shard_keys(store, "run") == [key]


async def test_f14_a_put_that_hangs_is_given_up_and_repeated(store: FaultStore, threaded: AsyncStore) -> None:
    store._script = iter([Fault.HANG])
    async with writer_of(threaded, others=lambda: 0, try_timeout_seconds=0.05) as writer:
        key = await writer.write(*made_line(5))
        store.release.set()  # the late put stores the same bytes, or finds them
    assert len(store.puts) == 2
    assert shard_keys(store, "run") == [key]


async def test_f15_tries_are_bounded_and_the_error_says_what_to_do(store: FaultStore, threaded: AsyncStore) -> None:
    store.then = Fault.BEFORE
    writer = writer_of(threaded, others=lambda: 0, tries=3)
    with pytest.raises(ShardNotWritten, match=r"3 tries failed.*made to fail before storing.*write them again"):
        await writer.write(*made_line(0))
    assert len(store.puts) == 3
    assert "made to fail" in str(writer.statistics().last_error)
    store.then = Fault.NONE
    await writer.close()


async def test_f16_a_refusal_is_tried_only_once_more(store: FaultStore, threaded: AsyncStore) -> None:
    store._script = iter([Fault.REFUSED, Fault.REFUSED])
    async with writer_of(threaded, others=lambda: 0) as writer:
        with pytest.raises(ShardNotWritten, match="made to refuse"):
            await writer.write(*made_line(0))
        assert len(store.puts) == 2


async def test_f15_writing_again_tries_the_same_shard_again(store: FaultStore, threaded: AsyncStore) -> None:
    """All writers of a failed shard come back; it goes up once, under its first key."""
    store._script = iter([Fault.AFTER, Fault.BEFORE])
    async with writer_of(threaded, max_records=3, tries=2) as writer:
        outcomes = await asyncio.gather(
            *(writer.write(*made_line(index)) for index in range(3)), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [ShardNotWritten] * 3
        keys = await asyncio.gather(*(writer.write(*made_line(index)) for index in range(3)))
        statistics = writer.statistics()
    assert len(set(keys)) == 1
    assert len(set(store.puts)) == 1
    assert shard_keys(store, "run") == [keys[0]]
    assert (statistics.records, statistics.waiting_records, statistics.waiting_bytes) == (3, 0, 0)


async def test_f15_a_success_brings_the_failed_shards_along(store: FaultStore, threaded: AsyncStore) -> None:
    store._script = iter([Fault.BEFORE])
    async with writer_of(threaded, others=lambda: 0, tries=1) as writer:
        with pytest.raises(ShardNotWritten):
            await writer.write(*made_line(0))
        await writer.write(*made_line(1))
        while writer.statistics().uploading:
            await asyncio.sleep(0)
        assert stored_indices(store) == [0, 1]
        assert writer.statistics().waiting_records == 0


async def test_another_record_of_the_same_job_is_not_taken_for_the_failed_one(
    store: FaultStore, threaded: AsyncStore
) -> None:
    store._script = iter([Fault.BEFORE])
    async with writer_of(threaded, others=lambda: 0, tries=1) as writer:
        with pytest.raises(ShardNotWritten):
            await writer.write(*made_line(0, attempt=1))
        await writer.write(*made_line(0, attempt=2))
    assert stored_indices(store) == [0, 0]


async def test_f17_a_taken_key_is_left_alone_and_another_one_used(store: FaultStore, threaded: AsyncStore) -> None:
    taken = ShardName("run", 1_763_687_045_000, "w.t", 0, 1).key
    store.inner.put(taken, b"somebody else's")
    options: dict[str, Any] = {"token": "t", "clock": lambda: 1_763_687_045.0, "others": lambda: 0}
    async with writer_of(threaded, **options) as writer:
        key = await writer.write(*made_line(0))
    assert key != taken
    assert store.get(taken) == b"somebody else's"
    assert [entry.index for entry in read_entries(store, key)] == [0]


async def test_a_bug_reaches_its_writers_and_frees_the_buffer(store: FaultStore, threaded: AsyncStore) -> None:
    store._script = iter([Fault.BUG])
    async with writer_of(threaded, others=lambda: 0) as writer:
        with pytest.raises(ZeroDivisionError):
            await writer.write(*made_line(0))
        assert writer.statistics().waiting_bytes == 0
        await writer.write(*made_line(1))


# --- back-pressure -----------------------------------------------------------------------------------------------


async def test_f14_a_full_buffer_takes_in_nothing_until_a_shard_is_stored(
    store: FaultStore, threaded: AsyncStore
) -> None:
    store.then = Fault.HANG
    nbytes = len(made_line(0)[0])
    async with writer_of(threaded, high_water_bytes=nbytes * 2) as writer:
        first = [writing(writer, index) for index in range(2)]
        await asyncio.to_thread(store.hanging.wait, 30)
        late = [writing(writer, index) for index in range(2, 8)]
        await begun(*first, *late)
        assert writer.statistics().waiting_bytes == nbytes * 2
        store.then = Fault.NONE
        store.release.set()
        await asyncio.gather(*first, *late)
    assert stored_indices(store) == list(range(8))


async def test_f15_a_writer_that_waits_for_room_hears_of_a_failing_store(
    store: FaultStore, threaded: AsyncStore
) -> None:
    store.then = Fault.BEFORE
    nbytes = len(made_line(0)[0])
    writer = writer_of(threaded, high_water_bytes=nbytes * 2, tries=2)
    outcomes = await asyncio.gather(*(writer.write(*made_line(index)) for index in range(5)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ShardNotWritten] * 5
    assert writer.statistics().waiting_bytes == nbytes * 2
    with pytest.raises(ShardNotWritten, match="no more is taken in"):
        await writer.write(*made_line(9))
    store.then = Fault.NONE
    await asyncio.gather(*(writer.write(*made_line(index)) for index in (2, 3)))  # resumes by itself
    await writer.close()
    assert stored_indices(store) == [0, 1, 2, 3]


# --- the end -----------------------------------------------------------------------------------------------------


async def test_flush_makes_what_was_taken_in_durable(store: FaultStore, threaded: AsyncStore) -> None:
    async with writer_of(threaded) as writer:
        tasks = [writing(writer, index) for index in range(3)]
        await begun(*tasks)
        await writer.flush()
        assert stored_indices(store) == [0, 1, 2]
        await asyncio.gather(*tasks)


async def test_flush_says_when_a_shard_could_not_be_stored(store: FaultStore, threaded: AsyncStore) -> None:
    store.then = Fault.BEFORE
    writer = writer_of(threaded, tries=1)
    task = writing(writer, 0)
    await begun(task)
    with pytest.raises(ShardNotWritten):
        await writer.flush()
    with pytest.raises(ShardNotWritten):
        await task
    store.then = Fault.NONE
    await writer.flush()  # the failed shard goes along
    assert stored_indices(store) == [0]
    await writer.close()


async def test_close_flushes_and_then_takes_in_nothing(store: FaultStore, threaded: AsyncStore) -> None:
    writer = writer_of(threaded)
    task = writing(writer, 0)
    await begun(task)
    await writer.close()
    await task
    await writer.close()
    with pytest.raises(SinkClosed, match="run run"):
        await writer.write(*made_line(1))
    assert stored_indices(store) == [0]


async def test_close_ends_those_who_wait_for_room(store: FaultStore, threaded: AsyncStore) -> None:
    store.then = Fault.HANG
    writer = writer_of(threaded, high_water_bytes=1)
    first = writing(writer, 0)
    await asyncio.to_thread(store.hanging.wait, 30)
    late = writing(writer, 1)
    await begun(first, late)
    closing = asyncio.create_task(writer.close())
    with pytest.raises(SinkClosed):
        await late
    store.release.set()
    await closing
    await first
    assert stored_indices(store) == [0]


async def test_a_close_cut_short_tells_the_writers(store: FaultStore, threaded: AsyncStore) -> None:
    store.then = Fault.HANG
    writer = writer_of(threaded, others=lambda: 0)
    task = writing(writer, 0)
    await asyncio.to_thread(store.hanging.wait, 30)
    closing = asyncio.create_task(writer.close())
    await begun(task)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    with pytest.raises(SinkClosed, match="before it was stored"):
        await task


# --- all of it at random -----------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    faults=st.lists(st.sampled_from([Fault.NONE, Fault.BEFORE, Fault.AFTER, Fault.REFUSED]), max_size=30),
    records=st.integers(1, 25),
    max_records=st.integers(1, 6),
    high_water_bytes=st.sampled_from([1, 2000, 1 << 20]),
)
async def test_every_record_whose_write_returned_is_there_and_every_job_is_visible_once(
    tmp_path_factory: pytest.TempPathFactory, faults: list[Fault], records: int, max_records: int, high_water_bytes: int
) -> None:
    store = FaultStore(open_store(str(tmp_path_factory.mktemp("results"))), faults)

    async def insist(writer: ShardWriter, index: int) -> None:
        line, entry = made_line(index)
        while True:
            try:
                key = await writer.write(line, entry)
            except ShardNotWritten:
                continue
            assert entry in read_entries(store, key)
            return

    async with AsyncStore(store) as threaded:
        options: dict[str, Any] = {"max_records": max_records, "high_water_bytes": high_water_bytes, "tries": 2}
        async with writer_of(threaded, linger_seconds=0.001, **options) as writer:
            await asyncio.gather(*(insist(writer, index) for index in range(records)))
            assert writer.statistics().waiting_bytes == 0
    assert [record["index"] for record in sorted(visible_records(store, "run"), key=lambda row: int(row["index"]))] == [
        *range(records)
    ]
    assert len(dict(store.puts)) == len(set(store.puts))  # a key never had two different contents
