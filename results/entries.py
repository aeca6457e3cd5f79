"""What a shard says about each of its records without being unpacked: the packed rows of its trailing frame."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from results.errors import CorruptShard, RecordInvalid

STATUSES: Final = ("ok", "failed", "cancelled", "dead")  # their places are the codes on disk: only append
FRAME_MAGIC: Final = 0x184D2A50  # a zstd skippable frame (RFC 8878, section 3.1.2): every reader jumps over it
SIGNATURE: Final = b"PRLY\x01"
WAY_OUT: Final = "move the shard away and run the same submit again to make its conversations anew"

_ROW: Final = struct.Struct("<QIBIIII")
_FRAME_HEADER: Final = struct.Struct("<II")
_COUNT_MAXIMUM: Final = 0xFFFF_FFFF
_INDEX_MAXIMUM: Final = 0xFFFF_FFFF_FFFF_FFFF
_CODES: Final = {status: code for code, status in enumerate(STATUSES)}


@dataclass(frozen=True, slots=True)
class Entry:
    """Which job's record a line of a shard is, and what is counted of it."""

    index: int
    attempt: int
    status: str
    input_tokens: int
    output_tokens: int
    model_calls: int
    tool_calls: int

    def packed(self) -> bytes:
        """Return the row of this entry; counts above 32 bits are stored as their maximum."""
        code = _CODES.get(self.status)
        if code is None:
            raise RecordInvalid(f"job {self.index}: no status {self.status!r}; known: {', '.join(STATUSES)}")
        counts = (self.input_tokens, self.output_tokens, self.model_calls, self.tool_calls)
        if min(self.index, self.attempt, *counts) < 0 or self.index > _INDEX_MAXIMUM or self.attempt > _COUNT_MAXIMUM:
            raise RecordInvalid(f"job {self.index}: index, attempt and counts must be unsigned numbers: {self}")
        return _ROW.pack(self.index, self.attempt, code, *(min(count, _COUNT_MAXIMUM) for count in counts))


def trailer_size(count: int) -> int:
    """Return how many bytes the trailing frame of a shard of `count` records has."""
    return _FRAME_HEADER.size + len(SIGNATURE) + count * _ROW.size


def pack_trailer(rows: bytes | bytearray) -> bytes:
    """Return the skippable frame that holds packed entries."""
    return _FRAME_HEADER.pack(FRAME_MAGIC, len(SIGNATURE) + len(rows)) + SIGNATURE + rows


def unpack_trailer(tail: bytes, count: int, key: str) -> Iterator[Entry]:
    """Return the entries of a shard of `count` records from its last bytes; CorruptShard."""
    size = trailer_size(count)
    frame = memoryview(tail)[-size:]
    header = _FRAME_HEADER.pack(FRAME_MAGIC, size - _FRAME_HEADER.size) + SIGNATURE
    if len(frame) != size or frame[: len(header)] != header:
        raise CorruptShard(f"shard {key}: its last {size} bytes are not the entries of {count} records; {WAY_OUT}")
    return _unpacked(frame[len(header) :], key)


def _unpacked(rows: memoryview, key: str) -> Iterator[Entry]:
    for index, attempt, code, *counts in _ROW.iter_unpack(rows):
        if code >= len(STATUSES):
            raise CorruptShard(f"shard {key}: an entry has the unknown status code {code}; {WAY_OUT}")
        yield Entry(index, attempt, STATUSES[code], *counts)
