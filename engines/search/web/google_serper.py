"""`search/web/google_serper`: Google's results through the service serper.dev."""

from typing import Any, Self

from pydantic import Field, SecretStr, model_validator

from engines.checked import checked
from engines.errors import ToolFailed
from engines.kind_settings import EngineParts
from engines.network.connection import ConnectionSettings
from engines.search.documents import Document
from engines.search.engine import SearchEngine
from engines.search.searching import Query, SearchSettings
from engines.search.server import SearchServer
from engines.search.web.hits import web_document
from engines.tool import ErrorType

_KEY_HEADER = "X-API-KEY"


class GoogleSerperSettings(SearchSettings, ConnectionSettings):
    """`serper_api_key` is the account's key; `gl` a country and `hl` a language, as Google knows them."""

    url: str = "https://google.serper.dev/search"
    serper_api_key: SecretStr | None = Field(default=None, exclude=True)
    gl: str = "us"
    hl: str = "en"

    @model_validator(mode="before")
    @classmethod
    def _key_is_a_header(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("serper_api_key") and "api_key" not in data:
            return {**data, "api_key": {"name": _KEY_HEADER, "value": data["serper_api_key"]}}
        return data

    @model_validator(mode="after")
    def _has_a_key(self) -> Self:
        if self.api_key is None and not self.headers:
            raise ValueError("an account is needed: give serper_api_key, for example ${SERPER_API_KEY}")
        return self


class GoogleSerper:
    """Sends one request per query."""

    def __init__(self, settings: GoogleSerperSettings) -> None:
        self._settings = settings
        self._server = SearchServer(settings, "Google Serper")

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
        """Return the organic results by position; none for no query."""
        if not query.text:
            return []
        asked = {"q": query.text, "gl": self._settings.gl, "hl": self._settings.hl, "num": query.limit}
        found = self._server.value(await self._server.ask("POST", self._settings.url, body=asked))
        organic = found.get("organic", []) if isinstance(found, dict) else None
        if not isinstance(organic, list):
            raise ToolFailed(ErrorType.unparseable_result, "Google Serper: the answer holds no organic results")
        hits = sorted((hit for hit in organic if isinstance(hit, dict)), key=_position)
        return [
            web_document(place, title=hit.get("title"), url=hit.get("link"), snippet=hit.get("snippet"))
            for place, hit in enumerate(hits[: query.limit], start=1)
        ]


def from_parts(parts: EngineParts) -> SearchEngine:
    """Build the engine."""
    settings = checked(GoogleSerperSettings, parts.settings, at=parts.at)
    return SearchEngine(parts.toolsets, GoogleSerper(settings), settings, **parts.contract(settings))


def _position(hit: dict[str, Any]) -> float:
    position = hit.get("position")
    return float(position) if isinstance(position, int | float) else float("inf")
