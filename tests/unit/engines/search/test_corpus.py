"""A corpus is in memory while there are sessions."""

import asyncio
import threading

import pytest

from engines.search.corpus import Corpus, CorpusSearcher
from engines.search.documents import Document
from engines.search.searching import Query


class Loads:
    """Counts loads; a test may hold them up or let them fail."""

    def __init__(self, size: int = 3) -> None:
        self.number = 0
        self.failure: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self._size = size

    def __call__(self) -> Corpus:
        self.number += 1
        assert self.gate.wait(10)
        if self.failure is not None:
            raise self.failure
        return Corpus.of([Document(str(number), f"{number} same") for number in range(self._size)])


async def test_d84_the_corpus_is_loaded_with_the_first_session_and_freed_with_the_last() -> None:
    loads = Loads()
    searcher = CorpusSearcher(loads)
    await searcher.open()
    assert not searcher.is_loaded
    await asyncio.gather(*(searcher.begin() for _ in range(20)))
    assert loads.number == 1
    for _ in range(19):
        await searcher.end()
    assert [found.id for found in await searcher.search(Query("same", 9, {}))] == ["0", "1", "2"]
    await searcher.end()
    assert not searcher.is_loaded
    await searcher.begin()
    assert loads.number == 2
    await searcher.close()
    assert not searcher.is_loaded


async def test_a_load_that_fails_fails_the_sessions_that_wait_and_is_tried_again_by_the_next() -> None:
    loads = Loads()
    loads.failure = OSError("gone")
    searcher = CorpusSearcher(loads)
    outcomes = await asyncio.gather(*(searcher.begin() for _ in range(3)), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["gone"] * 3
    loads.failure = None
    await searcher.begin()
    assert await searcher.search(Query("1", 9, {}))
    await searcher.close()


async def test_a_session_that_is_cancelled_while_the_corpus_is_loaded_holds_nothing() -> None:
    loads = Loads()
    loads.gate.clear()
    searcher = CorpusSearcher(loads)
    waiting = asyncio.create_task(searcher.begin())
    while loads.number == 0:
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    loads.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not searcher.is_loaded


async def test_a_large_corpus_is_searched_in_a_thread() -> None:
    searcher = CorpusSearcher(Loads(size=3000))
    await searcher.begin()
    assert [found.id for found in await searcher.search(Query("2999", 9, {}))] == ["2999"]
    assert len(await searcher.search(Query("", 9, {}, seed=3))) == 9
    await searcher.end()
