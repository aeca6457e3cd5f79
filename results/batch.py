"""The records that will be one shard, and the answer their writers wait for."""

from asyncio import Future
from dataclasses import dataclass, field

from results.entries import Entry
from results.shard_format import encode_shard


@dataclass(slots=True, eq=False)
class Batch:
    """Lines in their order with their packed entries; `done` ends with the shard's key once it is durable."""

    done: Future[str]
    key: str = ""
    lines: list[bytes] = field(default_factory=list)
    rows: bytearray = field(default_factory=bytearray)
    entries: set[Entry] = field(default_factory=set)
    count: int = 0
    raw_bytes: int = 0
    blob: bytes | None = None

    def add(self, line: bytes, entry: Entry, row: bytes) -> None:
        """Take in one record."""
        self.lines.append(line)
        self.rows += row
        self.entries.add(entry)
        self.count += 1
        self.raw_bytes += len(line)

    def encoded(self) -> bytes:
        """Return the shard's bytes, the same at every call; made once, in the thread that asks first."""
        if self.blob is None:
            self.blob = encode_shard(self.lines, self.rows)
            self.lines = []  # only after the blob stands: another thread may be here too
        return self.blob

    def fail(self, error: BaseException) -> None:
        """Tell the writers; that none of them listens any more is no fault."""
        if not self.done.done():
            self.done.set_exception(error)
            self.done.exception()
