"""`search/web/duckduckgo`: the results of DuckDuckGo's page without scripts; no account is needed."""

from html.parser import HTMLParser
from typing import Literal
from urllib.parse import parse_qs, urlencode, urlsplit

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

_SAFE_SEARCH = {"on": "1", "moderate": "-1", "off": "-2"}
_CHALLENGE = 202
"""The status of the page that asks whether one is human: DuckDuckGo has had enough of this address for now."""


class DuckDuckGoSettings(SearchSettings, ConnectionSettings):
    """`timelimit` is a day, week, month or year; None is all time."""

    url: str = "https://html.duckduckgo.com/html/"
    region: str = "us-en"
    safesearch: Literal["on", "moderate", "off"] = "moderate"
    timelimit: Literal["d", "w", "m", "y"] | None = None


class DuckDuckGo:
    """Reads one page of results per query."""

    def __init__(self, settings: DuckDuckGoSettings) -> None:
        self._settings = settings
        self._server = SearchServer(settings, "DuckDuckGo")

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
        """Return the page's results in its order, advertisements left out; none for no query."""
        if not query.text:
            return []
        asked = {"q": query.text, "kl": self._settings.region, "kp": _SAFE_SEARCH[self._settings.safesearch]}
        if self._settings.timelimit is not None:
            asked["df"] = self._settings.timelimit
        answer = await self._server.ask("GET", f"{self._settings.url}?{urlencode(asked)}")
        if answer.status == _CHALLENGE:
            message = "DuckDuckGo answers no more searches from here for now"
            raise ToolFailed(ErrorType.network, message, may_pass=True)
        page = self._server.value(answer)
        results = _Results()
        results.feed(page if isinstance(page, str) else "")
        results.close()
        return [
            web_document(place, title=title, url=url, snippet=snippet)
            for place, (title, url, snippet) in enumerate(results.found[: query.limit], start=1)
        ]


def from_parts(parts: EngineParts) -> SearchEngine:
    """Build the engine."""
    settings = checked(DuckDuckGoSettings, parts.settings, at=parts.at)
    return SearchEngine(parts.toolsets, DuckDuckGo(settings), settings, **parts.contract(settings))


class _Results(HTMLParser):
    """Collects the links of class `result__a` with the texts of class `result__snippet` that follow them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, str, str]] = []
        self._into = ""
        self._tag = ""
        self._is_ad = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        classes = (attributes.get("class") or "").split()
        if "result__a" in classes:
            url = _destination(attributes.get("href") or "")
            self._is_ad = not url
            if not self._is_ad:
                self.found.append(("", url, ""))
            self._into, self._tag = "title", tag
        elif "result__snippet" in classes:
            self._into, self._tag = "snippet", tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._tag:
            self._into = self._tag = ""

    def handle_data(self, data: str) -> None:
        if not self._into or self._is_ad or not self.found:
            return
        title, url, snippet = self.found[-1]
        self.found[-1] = (title + data, url, snippet) if self._into == "title" else (title, url, snippet + data)


def _destination(href: str) -> str:
    """Return where a result leads: links go by way of a counting page, advertisements by another."""
    parts = urlsplit(href if "//" in href else f"https:{href}")
    if parts.path == "/y.js":
        return ""
    counted = parse_qs(parts.query).get("uddg")
    return counted[0] if parts.path == "/l/" and counted else href
