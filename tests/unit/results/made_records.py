"""Small records and shards for the tests of this folder."""

from collections.abc import Iterable
from typing import Any

from results.entries import Entry
from results.keys import ShardName
from results.record import Record, encode_record, entry_of
from results.shard_format import encode_shard
from results.store import Store


def made_record(index: int, *, attempt: int = 1, status: str = "ok", run_id: str = "run", **changes: Any) -> Record:
    fields: dict[str, Any] = {
        "run_id": run_id,
        "job_id": f"job-{index}",
        "index": index,
        "attempt": attempt,
        "status": status,
        "messages": [{"role": "user", "content": f"Wie wird das Wetter in Zürich? ({index})"}],
        "tools": [{"type": "function", "function": {"name": "weather_api__get_weather", "parameters": {}}}],
        "tool_results": [
            {
                "call_id": "call-1",
                "name": "weather_api::get_weather",
                "result": {"celsius": 3},
                "error": None,
                "error_type": None,
                "metadata": {},
            }
        ],
        "input_tokens": 10,
        "output_tokens": 5,
        "model_calls": 2,
        "tool_calls": 1,
        "model": "offline",
        "seed": 7,
        "started_at": "2026-11-21T01:02:03Z",
        "finished_at": "2026-11-21T01:02:04Z",
        "metadata": {},
    }
    return Record(**(fields | changes))


def made_line(index: int, **changes: Any) -> tuple[bytes, Entry]:
    record = made_record(index, **changes)
    return encode_record(record), entry_of(record)


def put_shard(store: Store, records: Iterable[Record], *, sequence: int = 0, run_id: str = "run") -> str:
    """Store a shard as a writer would; shards of a higher sequence have later keys."""
    rows = list(records)
    key = ShardName(run_id, 1_763_687_045_000 + sequence, "writer.t", sequence, len(rows)).key
    blob = encode_shard([encode_record(row) for row in rows], b"".join(entry_of(row).packed() for row in rows))
    store.put(key, blob)
    return key
