"""What every search has in common: a query, something that answers it, and the settings of both."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import Field

from engines.kind_settings import EngineSettings
from engines.search.documents import Document


class SearchSettings(EngineSettings):
    """`limit` holds where a call says neither `size` nor `limit`; no call gets more than `max_limit`.

    Documents that score below `relevance_threshold` are left out; those without a score stay (rule D84).
    """

    limit: int = Field(default=5, ge=1)
    max_limit: int = Field(default=100, ge=1)
    relevance_threshold: float | None = None
    query_argument: str = Field(default="query", min_length=1)


@dataclass(frozen=True, slots=True)
class Query:
    """One search: what for, how many, the call's arguments whole, and the seed of whatever is left to chance."""

    text: str
    limit: int
    arguments: Mapping[str, Any]
    seed: int = 0


class Searcher(Protocol):
    """Something to search in. `begin` and `end` stand around each session, `open` and `close` around all."""

    async def open(self) -> None:
        """Make ready what all sessions share."""

    async def close(self) -> None:
        """Give it back."""

    async def begin(self) -> None:
        """Know of one more session."""

    async def end(self) -> None:
        """Know of one session less."""

    async def search(self, query: Query) -> list[Document]:
        """Return at most `query.limit` documents, the best first; raises ToolFailed."""
