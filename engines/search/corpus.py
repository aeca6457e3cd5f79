"""Searches a corpus in memory: by words, or, without a query, by the session's chance."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engines.search.bm25 import WordIndex
from engines.search.documents import Document
from engines.search.searching import Query

_SEARCHED_IN_THREAD = 2_000
"""From so many documents on, a search takes milliseconds, which the event loop must not wait for."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents and the index of their words; titles and other texts beside them are found too."""

    documents: Sequence[Document]
    index: WordIndex

    @classmethod
    def of(cls, documents: Sequence[Document]) -> "Corpus":
        """Index the documents."""
        return cls(documents, WordIndex([_searched(document) for document in documents]))

    def answer(self, query: Query) -> list[Document]:
        """Return the best documents; for no query at all, some by chance, unranked."""
        if not query.text:
            most = min(query.limit, len(self.documents))
            return random.Random(query.seed).sample(self.documents, most)
        best = self.index.best(query.text, query.limit)
        return [replace(self.documents[place], score=score) for place, score in best]


class CorpusSearcher:
    """Holds a corpus for as long as there are sessions: loaded in a thread for the first, freed after the last."""

    def __init__(self, load: Callable[[], Corpus]) -> None:
        self._load = load
        self._sessions = 0
        self._loading: asyncio.Task[Corpus] | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether the corpus is in memory, or on its way."""
        return self._loading is not None

    async def open(self) -> None:
        """Do nothing yet: whether any session comes is not known."""

    async def close(self) -> None:
        """Let go of the corpus."""
        self._sessions = 0
        await self._free()

    async def begin(self) -> None:
        """Load the corpus for the first session; the others wait for the same load."""
        self._sessions += 1
        try:
            await self._corpus()
        except BaseException:
            await self.end()
            raise

    async def end(self) -> None:
        """Free the corpus with the last session (rule D84)."""
        self._sessions = max(0, self._sessions - 1)
        if self._sessions == 0:
            await self._free()

    async def search(self, query: Query) -> list[Document]:
        """Search; a large corpus in a thread."""
        corpus = await self._corpus()
        if len(corpus.documents) < _SEARCHED_IN_THREAD:
            return corpus.answer(query)
        return await asyncio.to_thread(corpus.answer, query)

    async def _corpus(self) -> Corpus:
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(self._load))
        return await asyncio.shield(self._loading)

    async def _free(self) -> None:
        loading, self._loading = self._loading, None
        if loading is not None:
            await asyncio.gather(loading, return_exceptions=True)  # A failure was told to whoever waited for it.


def _searched(document: Document) -> str:
    texts = [value for value in document.metadata.values() if isinstance(value, str)]
    return "\n".join([*texts, document.text])
