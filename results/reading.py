"""Reads a run's records back, each job once, without holding more than the places of its records in memory."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

import orjson

from results.entries import WAY_OUT, Entry, trailer_size, unpack_trailer
from results.errors import CorruptShard
from results.keys import ShardName, data_folder
from results.prefetch import fetch_ahead
from results.shard_format import decode_lines
from results.store_contract import Store
from results.visible import VisibleLines

JSONObject = dict[str, Any]
OnCorrupt = Callable[[CorruptShard], None]


def shard_keys(store: Store, run_id: str) -> list[str]:
    """Return the keys of a run's shards in their order; other objects in the folder are passed over."""
    return [row.key for row in store.list(data_folder(run_id)) if ShardName.parse(row.key) is not None]


def read_entries(store: Store, key: str) -> list[Entry]:
    """Return what a shard says of its records, from its last bytes alone; CorruptShard."""
    count = _count(key)
    return [*unpack_trailer(store.get_tail(key, trailer_size(count)), count, key)]


def read_lines(store: Store, key: str) -> Iterator[bytes]:
    """Return the records of a shard as JSON lines without newlines; CorruptShard before the first one."""
    return decode_lines(store.get(key), key)


def visible_records(store: Store, run_id: str, *, on_corrupt: OnCorrupt | None = None) -> Iterator[JSONObject]:
    """Return one record per job in the order of the shards.

    With `on_corrupt` a damaged shard is reported there and passed over; without it CorruptShard ends the reading.
    """
    for line, _ in visible_lines(store, run_id, on_corrupt=on_corrupt):
        yield orjson.loads(line)


def visible_lines(store: Store, run_id: str, *, on_corrupt: OnCorrupt | None = None) -> Iterator[tuple[bytes, Entry]]:
    """Return line and entry of one record per job, as stored: for those who pass records on unread."""
    keys = shard_keys(store, run_id)
    visible = _visible(store, keys, on_corrupt)
    wanted = _with_ordinals(keys, visible)
    for (ordinal, key), fetched in fetch_ahead(lambda item: store.get(item[1]), wanted):
        blob = fetched.result()
        try:
            entries = _entries_of(blob, key)
            lines = _lines_of(blob, key, len(entries))
        except CorruptShard as error:
            _report(error, on_corrupt)
            continue
        places = dict(visible.of_shard(ordinal, entries))
        yield from ((line, places[number]) for number, line in enumerate(lines) if number in places)


def visible_entries(store: Store, run_id: str, *, on_corrupt: OnCorrupt | None = None) -> Iterator[Entry]:
    """Return the entry of one record per job, from the shards' tails: what a lost ledger is rebuilt from."""
    keys = shard_keys(store, run_id)
    visible = _visible(store, keys, on_corrupt)
    wanted = _with_ordinals(keys, visible)
    for (ordinal, _), fetched in fetch_ahead(lambda item: read_entries(store, item[1]), wanted):
        entries = _unless_corrupt(fetched, on_corrupt)
        yield from (entry for _, entry in visible.of_shard(ordinal, entries))


def find_record(store: Store, run_id: str, *, index: int | None = None, job_id: str | None = None) -> JSONObject | None:
    """Return the visible record of one job; by `job_id` the records themselves are searched, which takes longer."""
    if (index is None) == (job_id is None):
        raise ValueError("find_record: name the job by index or by job_id, one of the two")
    keys = shard_keys(store, run_id)
    if index is None:
        index = _index_of(store, keys, str(job_id))
    return None if index is None else _record_at(store, keys, index)


def _record_at(store: Store, keys: list[str], index: int) -> JSONObject | None:
    candidates = (
        (entry.attempt, key, line)
        for key, fetched in fetch_ahead(lambda key: read_entries(store, key), keys)
        for line, entry in enumerate(fetched.result())
        if entry.index == index
    )
    place = min(candidates, default=None)
    if place is None:
        return None
    _, key, wanted = place
    line = next(line for number, line in enumerate(read_lines(store, key)) if number == wanted)
    record: JSONObject = orjson.loads(line)
    return record


def _index_of(store: Store, keys: list[str], job_id: str) -> int | None:
    encoded = orjson.dumps(job_id)
    for key, fetched in fetch_ahead(store.get, keys):
        for line in decode_lines(fetched.result(), key):
            if encoded in line:  # a cheap look before the costly one
                record = orjson.loads(line)
                if record["job_id"] == job_id:
                    return int(record["index"])
    return None


def _visible(store: Store, keys: list[str], on_corrupt: OnCorrupt | None) -> VisibleLines:
    visible = VisibleLines()
    for ordinal, (_, fetched) in enumerate(fetch_ahead(lambda key: read_entries(store, key), keys)):
        visible.add_shard(ordinal, _unless_corrupt(fetched, on_corrupt))
    return visible


def _with_ordinals(keys: list[str], visible: VisibleLines) -> Iterable[tuple[int, str]]:
    wanted = visible.shards()
    return ((ordinal, key) for ordinal, key in enumerate(keys) if ordinal in wanted)


def _unless_corrupt(fetched: Future[list[Entry]], on_corrupt: OnCorrupt | None) -> list[Entry]:
    try:
        return fetched.result()
    except CorruptShard as error:
        _report(error, on_corrupt)
        return []


def _report(error: CorruptShard, on_corrupt: OnCorrupt | None) -> None:
    if on_corrupt is None:
        raise error
    on_corrupt(error)


def _entries_of(blob: bytes, key: str) -> list[Entry]:
    count = _count(key)
    return [*unpack_trailer(blob[-trailer_size(count) :], count, key)]


def _lines_of(blob: bytes, key: str, count: int) -> list[bytes]:
    lines = [*decode_lines(blob, key)]
    if len(lines) != count:
        raise CorruptShard(f"shard {key}: {len(lines)} lines, but entries for {count}; {WAY_OUT}")
    return lines


def _count(key: str) -> int:
    name = ShardName.parse(key)
    if name is None:
        raise CorruptShard(f"{key}: not the key of a shard; pass a key from shard_keys")
    return name.count
