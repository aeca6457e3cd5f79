"""Server-sent events, read as they come: the `data` of each event (WHATWG HTML, section 9.2.6)."""

from collections.abc import Iterator

MAX_EVENT_BYTES = 16 << 20


class EventReader:
    """Takes chunks cut anywhere, gives whole events; their names are left out, since the data repeats them."""

    __slots__ = ("_data", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def events_in(self, chunk: bytes) -> Iterator[bytes]:
        """The data of every event that this chunk completes; ValueError for one that never ends."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_EVENT_BYTES:
            raise ValueError(f"an event of the stream is longer than {MAX_EVENT_BYTES >> 20} MB")
        for raw in lines:
            line = raw.removesuffix(b"\r")
            if not line:
                if self._data:
                    yield b"\n".join(self._data)
                    self._data.clear()
            elif line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
