"""Lines of bounded length out of any chunks."""

from hypothesis import given
from hypothesis import strategies as st

from engines.mcp.lines import Lines, Overlong

WORDS = st.lists(st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"").strip()), max_size=20)


def fed(lines: Lines, *chunks: bytes) -> list[bytes | Overlong]:
    return [line for chunk in chunks for line in lines.feed(chunk)]


@given(WORDS, st.lists(st.integers(1, 30), max_size=20))
def test_lines_are_the_same_however_they_are_chunked(words: list[bytes], cuts: list[int]) -> None:
    data = b"".join(word + b"\r\n" for word in words)
    chunks, start = [], 0
    for cut in cuts:
        chunks.append(data[start : start + cut])
        start += cut
    assert fed(Lines(100), *chunks, data[start:]) == [word for word in words if word]


def test_f23_a_line_without_end_is_not_kept_in_memory() -> None:
    lines = Lines(1000)
    for _ in range(1000):
        assert fed(lines, b"x" * 1000) == []
    assert sum(map(len, lines._parts)) <= 2000
    (overlong,) = fed(lines, b"\n")
    assert isinstance(overlong, Overlong)
    assert len(overlong.head) + len(overlong.tail) <= 1024
    assert fed(lines, b"next\n") == [b"next"]


def test_an_overlong_answer_tells_whose_it_is_first_or_last() -> None:
    first = b'{"jsonrpc": "2.0", "id": 17, "result": "' + b"x" * 3000 + b'"}\n'
    last = b'{"result":{"id": 5, "text":"' + b"x" * 3000 + b'"},"jsonrpc":"2.0","id":18}\n'
    neither = b'{"jsonrpc":"2.0","method":"' + b"x" * 3000 + b'"}\n'
    ids = [line.request_id for line in fed(Lines(1000), first + last + neither) if isinstance(line, Overlong)]
    assert ids == [17, 18, None]
