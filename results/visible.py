"""Which record of a job readers see: the one with the smallest (attempt, key, line)."""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from results.entries import Entry

PAGE_JOBS: Final = 1 << 16
_ABSENT: Final = 0xFFFF_FFFF


def _blank() -> "array[int]":
    return array("I", [_ABSENT]) * PAGE_JOBS


@dataclass(slots=True)
class _Page:
    """The places of neighbouring jobs; an absent one has no shard."""

    attempts: "array[int]" = field(default_factory=_blank)
    shards: "array[int]" = field(default_factory=_blank)
    lines: "array[int]" = field(default_factory=_blank)


class VisibleLines:
    """The place of every job's visible record; 12 bytes a job where the indices are dense."""

    def __init__(self) -> None:
        self._pages: dict[int, _Page] = {}

    def add_shard(self, ordinal: int, entries: Iterable[Entry]) -> None:
        """Take in a shard; `ordinal` is its place in the order of the keys, which must rise from call to call."""
        for line, entry in enumerate(entries):
            place = entry.index % PAGE_JOBS
            page = self._page(entry.index // PAGE_JOBS)
            # Shards come in the order of their keys, so at an equal attempt the one that is there is smaller.
            if page.shards[place] == _ABSENT or entry.attempt < page.attempts[place]:
                page.attempts[place], page.shards[place], page.lines[place] = entry.attempt, ordinal, line

    def shards(self) -> set[int]:
        """Return the ordinals of the shards that hold a visible record."""
        found: set[int] = set()
        for page in self._pages.values():
            found.update(page.shards)
        found.discard(_ABSENT)
        return found

    def of_shard(self, ordinal: int, entries: Iterable[Entry]) -> Iterator[tuple[int, Entry]]:
        """Return line and entry of each visible record of a shard."""
        for line, entry in enumerate(entries):
            place = entry.index % PAGE_JOBS
            page = self._pages.get(entry.index // PAGE_JOBS)
            if page is not None and page.shards[place] == ordinal and page.lines[place] == line:
                yield line, entry

    def _page(self, number: int) -> _Page:
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = _Page()
        return page
