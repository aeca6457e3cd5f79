"""The `search/…` engines: a call is a query, its result a list of documents."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from engines.calling.effects import Effects
from engines.calling.faults import OUTAGE, RATE_LIMITED, ErrorCategory
from engines.chance import derive_seed
from engines.engine import ToolEngine
from engines.errors import ToolFailed
from engines.plain import JSONObject
from engines.search.searching import Query, Searcher, SearchSettings
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall, ToolResult
from engines.toolset import Toolset

GARBLED = "<garbled>"
_INDEX_NOT_FOUND = "index_not_found"
_WITH_OWN_WORDS = frozenset({"network_error", RATE_LIMITED, OUTAGE})
_HOLDS_ON = "searcher"


class SearchEngine(ToolEngine):
    """Searches; `default_index` is that of calls that name none, for searchers that have several."""

    effects: ClassVar[Effects] = Effects.nothing

    def __init__(
        self,
        toolsets: Sequence[Toolset],
        searcher: Searcher,
        settings: SearchSettings,
        *,
        default_index: str | None = None,
        **contract: Any,
    ) -> None:
        super().__init__(toolsets, **contract)
        self._searcher = searcher
        self._settings = settings
        self._default_index = default_index

    async def open(self) -> None:
        """Make the searcher ready."""
        await self._searcher.open()

    async def close(self) -> None:
        """Close it."""
        await self._searcher.close()

    async def _open_session(self, session: Session) -> None:
        await self._searcher.begin()
        session.resources[_HOLDS_ON] = True

    async def _close_session(self, session: Session) -> None:
        if session.resources.pop(_HOLDS_ON, False):
            await self._searcher.end()

    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> list[JSONObject]:
        query = Query(
            text=self._text_of(call),
            limit=self._limit_of(call),
            arguments=call.arguments,
            seed=derive_seed("search", session.seed, session.call_number),
        )
        threshold = self._settings.relevance_threshold
        return [
            document.to_dict()
            for document in await self._searcher.search(query)
            if threshold is None or document.score is None or document.score >= threshold
        ]

    def _text_of(self, call: ToolCall) -> str:
        text = call.arguments.get(self._settings.query_argument)
        if text is not None and not isinstance(text, str):
            raise ToolFailed(ErrorType.validation, f"{self._settings.query_argument} must be text, got {text!r}")
        return (text or "").strip()

    def _limit_of(self, call: ToolCall) -> int:
        """Return how many documents are wanted: `size`, else `limit`, else the setting."""
        for name in ("size", "limit"):
            wanted = call.arguments.get(name)
            if wanted is None:
                continue
            if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
                raise ToolFailed(ErrorType.validation, f"{name} must be a whole number of 1 or more, got {wanted!r}")
            return min(wanted, self._settings.max_limit)
        return min(self._settings.limit, self._settings.max_limit)

    def _faulty_result(self, category: ErrorCategory, call: ToolCall) -> ToolResult:
        """Return a fault as a search tells it (rule D34)."""
        result = super()._faulty_result(category, call)
        if category.type == ErrorType.unparseable_result:
            return replace(result, result=GARBLED)
        if category.type == _INDEX_NOT_FOUND and self._default_index is not None:
            return replace(result, error=f"Index '{call.arguments.get('index', self._default_index)}' does not exist")
        if result.is_error and category.type not in _WITH_OWN_WORDS and "message" not in category.model_fields_set:
            return replace(result, error=f"Simulated error: {category.type}")
        return result
