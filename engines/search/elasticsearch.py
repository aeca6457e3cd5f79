"""`search/elasticsearch`: full-text search in an index of an Elasticsearch or OpenSearch cluster, over its REST API."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pydantic import Field, field_validator

from engines.checked import checked
from engines.errors import ToolFailed
from engines.kind_settings import EngineParts
from engines.network.connection import ConnectionSettings
from engines.search.documents import Document, Projection
from engines.search.engine import SearchEngine
from engines.search.searching import Query, SearchSettings
from engines.search.server import SearchServer
from engines.tool import ErrorType

_NAME = re.compile(r"[^A-Z\s*,/\\?\"<>|#:+_.-][^A-Z\s*,/\\?\"<>|#:]*")
_NOT_FOUND = 404


class ElasticsearchSettings(SearchSettings, ConnectionSettings):
    """`index` is searched unless a call names another of `indices`; `fields` hold the texts."""

    url: str = "http://localhost:9200"
    index: str
    indices: tuple[str, ...] = ()
    fields: tuple[str, ...] = Field(default=("text",), min_length=1)
    projection: dict[str, str] = Field(default_factory=dict)

    @field_validator("index", "indices")
    @classmethod
    def _are_names(cls, given: Any) -> Any:
        for name in [given] if isinstance(given, str) else given:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of one index (lower case, no wildcards or commas)")
        return given


class Elasticsearch:
    """Sends one `_search` per query."""

    def __init__(self, settings: ElasticsearchSettings) -> None:
        self._settings = settings
        self._server = SearchServer(settings, "Elasticsearch")
        self._path = re.sub(r"^[a-z]+://[^/]*|[?].*$", "", settings.url).rstrip("/")
        self._projection = Projection(settings.projection)

    async def open(self) -> None:
        """Make the client."""
        await self._server.open()

    async def close(self) -> None:
        """Close it."""
        await self._server.close()

    async def begin(self) -> None:
        """Sessions share everything."""

    async def end(self) -> None:
        """Sessions share everything."""

    async def search(self, query: Query) -> list[Document]:
        """Return the hits of an index that the recipe names; any other does not exist for a call."""
        index = query.arguments.get("index", self._settings.index)
        if index not in (self._settings.index, *self._settings.indices):  # A tuple: a call may name anything.
            raise _no_index(index)
        target = f"{self._path}/{quote(index, safe='')}/_search"
        answer = await self._server.ask("POST", target, body={"query": self._asked(query.text), "size": query.limit})
        if answer.status == _NOT_FOUND and b"index_not_found_exception" in answer.body:
            raise _no_index(index)
        hits = _hits(self._server.value(answer))[: query.limit]
        return [self._document(hit, place) for place, hit in enumerate(hits, start=1)]

    def _asked(self, text: str) -> dict[str, Any]:
        if not text:
            return {"match_all": {}}
        if len(self._settings.fields) == 1:
            return {"match": {self._settings.fields[0]: {"query": text}}}
        return {"multi_match": {"query": text, "fields": list(self._settings.fields)}}

    def _document(self, hit: Mapping[str, Any], position: int) -> Document:
        source = hit.get("_source")
        own = dict(source) if isinstance(source, dict) else {}
        score = hit.get("_score")
        document = {**own, "_id": hit.get("_id")} if not {"id", "doc_id"} & own.keys() else own
        return self._projection.document(
            document, position=position, score=float(score) if isinstance(score, int | float) else None
        )


def from_parts(parts: EngineParts) -> SearchEngine:
    """Build the engine."""
    settings = checked(ElasticsearchSettings, parts.settings, at=parts.at)
    return SearchEngine(
        parts.toolsets, Elasticsearch(settings), settings, default_index=settings.index, **parts.contract(settings)
    )


def _hits(found: Any) -> list[Mapping[str, Any]]:
    outer = found.get("hits") if isinstance(found, dict) else None
    hits = outer.get("hits") if isinstance(outer, dict) else None
    if not isinstance(hits, list):
        raise ToolFailed(ErrorType.unparseable_result, "Elasticsearch: the answer holds no hits")
    return [hit for hit in hits if isinstance(hit, dict)]


def _no_index(index: object) -> ToolFailed:
    return ToolFailed(ErrorType.execution, f"Index '{index}' does not exist")
