"""The bytes of a shard: one zstd frame of JSON lines with a checksum, then one skippable frame with the entries.

Never a leading frame and never two data frames: DuckDB and polars stop or fail there.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import zstandard

from results.entries import WAY_OUT, pack_trailer
from results.errors import CorruptShard

COMPRESSION_LEVEL: Final = 3
RAW_BYTES_MAXIMUM: Final = 1 << 31  # no writer makes such a shard: a header that says so is damaged or a bomb


def encode_shard(lines: Sequence[bytes], rows: bytes | bytearray) -> bytes:
    """Return the bytes of a shard; the same lines give the same bytes."""
    # The size goes into the frame's header: readers see by it that a shard was cut short.
    compressor = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL, write_checksum=True, write_content_size=True)
    stream = compressor.compressobj(size=sum(map(len, lines)))
    parts = [stream.compress(line) for line in lines]
    return b"".join([*parts, stream.flush(), pack_trailer(rows)])


def decode_lines(blob: bytes, key: str) -> Iterator[bytes]:
    """Return the lines of a shard without their newlines; CorruptShard before the first line, never after it."""
    return _split(_decoded(blob, key))


def _decoded(blob: bytes, key: str) -> bytes:
    try:
        header = zstandard.get_frame_parameters(blob)
        if header.content_size > RAW_BYTES_MAXIMUM:  # "unknown" is the largest number there is
            raise CorruptShard(f"shard {key}: its header gives no sensible size; {WAY_OUT}")
        return zstandard.ZstdDecompressor().decompress(blob)
    except zstandard.ZstdError as error:
        raise CorruptShard(f"shard {key}: {error}; {WAY_OUT}") from error


def _split(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        if end < 0:
            end = len(data)
        yield data[start:end]
        start = end + 1
