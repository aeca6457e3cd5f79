"""Answers within bounds: on the wire, unpacked, and how the two compare (rule S17)."""

import gzip
import zlib
from collections.abc import AsyncIterator, Callable

import pytest
import zstandard

from engines.network.answers import Answer, check_announced_length, checked_headers, read_bounded, unpacked
from engines.network.failures import FailureKind, NetworkFailure

HOST = "api.example"
MEGABYTE = 1 << 20
TEXT = b'{"city": "Paris", "temperature": 21.5}'
ROWS = b"".join(b'{"id": %d, "name": "%x"}' % (i, i * 7919) for i in range(20_000))


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "X-GZIP": gzip.compress,
    "deflate": zlib.compress,
    " Deflate ": raw_deflate,
    "zstd": zstandard.compress,
}


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.mark.parametrize("encoding", PACKERS)
@pytest.mark.parametrize("text", [TEXT, ROWS])
def test_each_encoding_that_is_asked_for_is_unpacked(encoding: str, text: bytes) -> None:
    assert unpacked(PACKERS[encoding](text), encoding, HOST, MEGABYTE) == text


def test_parts_that_follow_one_another_are_one_body() -> None:
    assert unpacked(gzip.compress(b"a") + gzip.compress(b"b") + b"\0\0", "gzip", HOST, 10) == b"ab"
    assert unpacked(zstandard.compress(b"a") + zstandard.compress(b"b"), "zstd", HOST, 10) == b"ab"


@pytest.mark.parametrize("encoding", ["", "identity", "Identity"])
def test_what_is_not_packed_stays(encoding: str) -> None:
    assert unpacked(TEXT, encoding, HOST, MEGABYTE) == TEXT


@pytest.mark.parametrize("encoding", PACKERS)
def test_sec_s17_a_bomb_is_refused_when_it_passes_the_bound_in_bytes(encoding: str) -> None:
    bomb = PACKERS[encoding](b"\0" * (64 * MEGABYTE))

    with pytest.raises(NetworkFailure, match=r"api\.example: the answer is larger than 50,000 bytes") as caught:
        unpacked(bomb, encoding, HOST, 50_000)
    assert caught.value.kind is FailureKind.too_large


@pytest.mark.parametrize("encoding", PACKERS)
def test_sec_s17_a_body_may_not_unpack_to_a_hundred_times_its_size(encoding: str) -> None:
    bomb = PACKERS[encoding](b"\0" * (64 * MEGABYTE))

    with pytest.raises(NetworkFailure, match=r"unpacks to more than 100 times its [\d,]+ bytes") as caught:
        unpacked(bomb, encoding, HOST, 1 << 40)
    assert caught.value.kind is FailureKind.too_large


@pytest.mark.parametrize("encoding", PACKERS)
def test_sec_s17_no_more_is_unpacked_than_the_bound(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole bomb, gigabytes of it, would not fit: what is unpacked at once stays a small piece."""
    import tracemalloc

    piece = PACKERS[encoding](b"\0" * (64 * MEGABYTE))
    bomb = piece * 90 if encoding in {"gzip", "X-GZIP", "zstd"} else piece
    tracemalloc.start()
    try:
        with pytest.raises(NetworkFailure):
            unpacked(bomb, encoding, HOST, 4 * MEGABYTE)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * MEGABYTE


def test_sec_s17_members_are_counted() -> None:
    """Each is unpacked by itself, and a few bytes long, a body could hold a hundred thousand of them."""
    with pytest.raises(NetworkFailure, match="more than 100 members"):
        unpacked(gzip.compress(b"") * 101, "gzip", HOST, MEGABYTE)


def test_sec_s17_small_bodies_may_shrink_as_they_like() -> None:
    rows = b'{"a": 1}' * 8_000

    assert len(gzip.compress(rows)) * 100 < len(rows)
    assert unpacked(gzip.compress(rows), "gzip", HOST, MEGABYTE) == rows


@pytest.mark.parametrize(
    "encoding", ["gzip, gzip", "gzip,br", "br", "compress", "identity, gzip", "x\r\ny", "deflate;q=1"]
)
def test_sec_s17_encodings_within_encodings_and_unknown_ones_are_refused(encoding: str) -> None:
    with pytest.raises(NetworkFailure, match=r"content-encoding .*asked for was one of gzip, deflate, zstd") as caught:
        unpacked(gzip.compress(gzip.compress(TEXT)), encoding, HOST, MEGABYTE)
    assert caught.value.kind is FailureKind.protocol
    assert "\r" not in caught.value.message


@pytest.mark.parametrize("encoding", PACKERS)
@pytest.mark.parametrize(
    "break_it", [lambda b: b[:-6], lambda b: b[:5], lambda b: b"no" + b, lambda b: b[:12] + b"?" * 9]
)
def test_a_broken_body_is_told_as_such(encoding: str, break_it: Callable[[bytes], bytes]) -> None:
    packed = PACKERS[encoding](bytes(range(256)) * 4)

    with pytest.raises(NetworkFailure, match=r"api\.example: the \S+ body cannot be unpacked") as caught:
        unpacked(break_it(packed), encoding, HOST, MEGABYTE)
    assert caught.value.kind is FailureKind.protocol


def test_more_behind_a_deflated_body_is_refused() -> None:
    with pytest.raises(NetworkFailure, match="behind its end"):
        unpacked(zlib.compress(TEXT) + b"more", "deflate", HOST, MEGABYTE)


async def test_sec_s17_the_wire_is_bounded_while_it_is_read() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1_000

    with pytest.raises(NetworkFailure, match="larger than 5,000 bytes; max_response_bytes allows more"):
        await read_bounded(endless(), HOST, 5_000)


@pytest.mark.parametrize("parts", [(), (b"abc",), (b"a", b"b", b"c"), (b"", b"abc", b"")])
async def test_a_body_is_the_sum_of_its_chunks(parts: tuple[bytes, ...]) -> None:
    assert await read_bounded(chunks(*parts), HOST, 3) == b"".join(parts)


@pytest.mark.parametrize("length", ["101", "1" * 5_000, "00000000000000000000101"])
def test_sec_s17_a_length_that_is_too_large_is_refused_before_the_body(length: str) -> None:
    with pytest.raises(NetworkFailure, match="larger than 100 bytes"):
        check_announced_length({"content-length": length}, HOST, 100)


@pytest.mark.parametrize("length", ["100", "0", "", "many", "²"])
def test_other_lengths_are_left_to_the_reading(length: str) -> None:
    check_announced_length({"content-length": length}, HOST, 100)


@pytest.mark.parametrize("pairs", [[(f"h{i}", "1") for i in range(101)], [("h", "x" * 65_536)]])
def test_sec_s17_headers_are_counted_and_weighed(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(NetworkFailure, match="more than 100 headers or 65,536 bytes") as caught:
        checked_headers(pairs, HOST)
    assert caught.value.kind is FailureKind.too_large


def test_headers_are_read_in_lower_case_and_joined() -> None:
    headers = checked_headers([("Content-Type", "Application/JSON; charset=utf-8"), ("A", "1"), ("a", "2")], HOST)

    assert headers == {"content-type": "Application/JSON; charset=utf-8", "a": "1, 2"}
    assert Answer(200, headers, b"").content_type == "application/json"
    assert Answer(200, {}, b"").content_type == ""
