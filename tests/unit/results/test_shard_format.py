"""The bytes of a shard, read by ourselves and by the programs its users read it with."""

import io
import struct
from pathlib import Path

import duckdb
import polars as pl
import pytest
import zstandard

from results.entries import Entry, trailer_size
from results.errors import CorruptShard
from results.reading import read_entries, read_lines, visible_records
from results.record import encode_record, entry_of
from results.shard_format import decode_lines, encode_shard
from results.store import Store, open_store
from tests.unit.results.made_records import made_record, put_shard

COUNT = 250
COLUMNS = [
    "run_id",
    "job_id",
    "index",
    "attempt",
    "status",
    "messages",
    "tools",
    "tool_results",
    "usage",
    "model",
    "error",
    "seed",
    "started_at",
    "finished_at",
    "metadata",
]


def made_shard(count: int = COUNT) -> bytes:
    records = [made_record(index) for index in range(count)]
    return encode_shard([encode_record(row) for row in records], b"".join(entry_of(row).packed() for row in records))


@pytest.fixture(params=["file", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "r") if request.param == "file" else request.getfixturevalue("bucket_url"))


def test_a_shard_is_one_data_frame_and_one_trailing_skippable_frame() -> None:
    blob = made_shard()
    parameters = zstandard.get_frame_parameters(blob)
    assert blob[:4] == bytes.fromhex("28b52ffd")
    assert parameters.has_checksum
    frame = zstandard.ZstdDecompressor().decompressobj()
    raw = frame.decompress(blob)
    assert frame.eof
    assert len(raw) == parameters.content_size
    rest = frame.unused_data
    magic, size = struct.unpack_from("<II", rest)
    assert magic == 0x184D2A50
    assert size == len(rest) - 8
    assert rest[8:13] == b"PRLY\x01"
    assert struct.unpack_from("<QIBIIII", rest, 13 + 29 * 7) == (7, 1, 0, 10, 5, 2, 1)
    assert len(rest) == trailer_size(COUNT) == 13 + 29 * COUNT


def test_the_same_records_give_the_same_bytes() -> None:
    assert made_shard() == made_shard()


def test_duckdb_reads_a_shard(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "shard.jsonl.zst"
    path.write_bytes(store.get(put_shard(store, [made_record(index) for index in range(COUNT)])))
    with duckdb.connect() as connection:
        table = connection.execute("select * from read_json_auto(?)", [str(path)])
        assert [column[0] for column in table.description or ()] == COLUMNS
        assert len(table.fetchall()) == COUNT
        query = "select sum(index), sum(usage.input_tokens), min(messages[1].role) from read_ndjson(?)"
        assert connection.execute(query, [str(path)]).fetchone() == (sum(range(COUNT)), COUNT * 10, "user")


def test_polars_reads_a_shard(store: Store) -> None:
    blob = store.get(put_shard(store, [made_record(index) for index in range(COUNT)]))
    frame = pl.read_ndjson(io.BytesIO(blob))
    assert frame.columns == COLUMNS
    assert frame["index"].to_list() == list(range(COUNT))


def test_duckdb_and_polars_read_all_shards_of_a_run_by_a_pattern(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    for sequence in range(3):
        put_shard(store, [made_record(sequence * 10 + place) for place in range(10)], sequence=sequence)
    pattern = str(tmp_path / "run" / "data" / "*" / "*.jsonl.zst")
    assert pl.scan_ndjson(pattern).select("index").collect()["index"].sort().to_list() == list(range(30))
    with duckdb.connect() as connection:
        rows = connection.execute("select count(*), max(index) from read_ndjson(?)", [pattern]).fetchone()
    assert rows == (30, 29)


def test_the_queries_of_the_guide_show_every_job_once(tmp_path: Path) -> None:
    """Those in docs/results.md."""
    store = open_store(str(tmp_path))
    put_shard(store, [made_record(0, attempt=2), made_record(1, seed=1)], sequence=0)
    put_shard(store, [made_record(0, attempt=1), made_record(1, seed=2)], sequence=1)
    pattern = str(tmp_path / "run" / "data" / "*" / "*.jsonl.zst")
    expected = [(row["index"], row["attempt"], row["seed"]) for row in visible_records(store, "run")]
    query = (
        "SELECT index, attempt, seed FROM read_ndjson(?, filename = true) "
        "QUALIFY row_number() OVER (PARTITION BY index ORDER BY attempt, filename) = 1"
    )
    with duckdb.connect() as connection:
        assert sorted(connection.execute(query, [pattern]).fetchall()) == sorted(expected)
    frame = pl.scan_ndjson(pattern, include_file_paths="shard").sort("attempt", "shard", maintain_order=True)
    once = frame.unique("index", keep="first", maintain_order=True).select("index", "attempt", "seed").collect()
    assert sorted(once.rows()) == sorted(expected)


def test_a_large_shard_of_many_blocks_is_read_whole(tmp_path: Path) -> None:
    """Larger than a zstd window and than the buffers of the readers."""
    words = [{"role": "user", "content": f"{index} " * 4000} for index in range(40)]
    records = [made_record(index, messages=words) for index in range(15)]
    key = put_shard(open_store(str(tmp_path)), records)
    path = tmp_path / key
    assert pl.read_ndjson(path).height == 15
    with duckdb.connect() as connection:
        assert connection.execute("select count(*) from read_ndjson(?)", [str(path)]).fetchone() == (15,)
    assert [*read_lines(open_store(str(tmp_path)), key)] == [encode_record(row)[:-1] for row in records]


def test_the_entries_come_from_the_tail_alone(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    records = [made_record(index, attempt=2, status="failed", input_tokens=1 << 40) for index in (5, 1 << 40)]
    key = put_shard(store, records)
    blob = store.get(key)
    data_size = len(blob) - trailer_size(2)
    store.put(key, b"\0" * data_size + blob[data_size:])
    assert read_entries(store, key) == [Entry(index, 2, "failed", 0xFFFF_FFFF, 5, 2, 1) for index in (5, 1 << 40)]


def test_a_shard_cut_short_anywhere_is_corrupt(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    key = put_shard(store, [made_record(index) for index in range(3)])
    blob = store.get(key)
    data_size = len(blob) - trailer_size(3)
    for size in range(len(blob)):
        store.put(key, blob[:size])
        with pytest.raises(CorruptShard, match="writer"):
            read_entries(store, key)
        if size < data_size:
            with pytest.raises(CorruptShard, match="move the shard away"):
                decode_lines(blob[:size], key)


def test_a_changed_byte_in_the_data_is_corrupt() -> None:
    blob = made_shard(3)
    changed_lines = []
    for place in range(len(blob) - trailer_size(3)):
        try:
            changed_lines += [*decode_lines(blob[:place] + bytes([blob[place] ^ 0x55]) + blob[place + 1 :], "key")]
        except CorruptShard:
            continue
    assert set(changed_lines) <= set(decode_lines(blob, "key"))  # a spare bit may change, a record never


def test_an_unknown_status_code_is_corrupt(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    key = put_shard(store, [made_record(0)])
    blob = bytearray(store.get(key))
    blob[-17] = 9
    store.put(key, bytes(blob))
    with pytest.raises(CorruptShard, match="status code 9"):
        read_entries(store, key)
