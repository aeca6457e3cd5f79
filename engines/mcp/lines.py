"""A stream of bytes cut into lines of bounded length: what a stdio server says, one message a line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_EDGE_BYTES = 512
_ID_FIRST = re.compile(rb'^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,')
_ID_LAST = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*\}\s*$')


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line that was longer than allowed: its edges, which still tell whose answer it was."""

    head: bytes
    tail: bytes

    @property
    def request_id(self) -> int | None:
        """The number of the request that the line answers, as JSON-RPC servers write it: first or last."""
        found = _ID_FIRST.search(self.head) or _ID_LAST.search(self.tail)
        return int(found[1]) if found else None


class Lines:
    """Collects chunks; never holds more than `max_bytes` of a line."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._length = 0
        self._overlong: Overlong | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes | Overlong]:
        """Yield each line that this chunk completes, without its end; an empty line is left out."""
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            self._add(piece)
            line = self._taken()
            if line:
                yield line
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        if self._overlong is not None:
            self._overlong = Overlong(self._overlong.head, (self._overlong.tail + piece)[-_EDGE_BYTES:])
            return
        self._parts.append(piece)
        self._length += len(piece)
        if self._length > self._max_bytes:
            whole = b"".join(self._parts)
            self._overlong = Overlong(whole[:_EDGE_BYTES], whole[-_EDGE_BYTES:])
            self._parts = []

    def _taken(self) -> bytes | Overlong:
        line = self._overlong if self._overlong is not None else b"".join(self._parts).strip()
        self._parts, self._length, self._overlong = [], 0, None
        return line
