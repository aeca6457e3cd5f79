"""Where an API is: the entry's `base_url`, else what the document says of its servers (rule D49)."""

import re
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

from engines.errors import InvalidTool
from engines.network.origins import Origin, OriginInvalid
from engines.plain import JSONObject

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_WAY_OUT = "give base_url in this entry"


@dataclass(frozen=True, slots=True)
class BaseURL:
    """A base URL without a slash at its end, and who named its host; no URL: the engine's `url` has to say it."""

    url: str | None = None
    named_by: Literal["recipe", "document"] = "recipe"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What the recipe says: `base_url` wins; relative servers start at the document's own URL."""

    base_url: str | None = None
    document_url: str | None = None
    """None for a file, and where the URL must not be stored with the tools."""

    def of(self, servers: Any) -> BaseURL:
        """Return the base URL by the servers that hold for an operation; InvalidTool when they lead nowhere."""
        if self.base_url is not None:
            return BaseURL(_plain(self.base_url))
        written = servers[0] if isinstance(servers, list) and servers else {}
        url = _filled(written) if isinstance(written, dict) else ""
        if self.document_url is not None:
            joined = _plain(urljoin(self.document_url, url or "/"))
            is_own = Origin.of(joined) == Origin.of(self.document_url)
            return BaseURL(joined, "recipe" if is_own else "document")
        if url in {"", "/"}:
            return BaseURL()
        if not urlsplit(url).scheme:
            raise InvalidTool(f"its server {url!r} is relative, and to what is not known; {_WAY_OUT}")
        return BaseURL(_plain(url), "document")


def _filled(server: JSONObject) -> str:
    """Return a server's URL with its variables' default values."""
    url = server.get("url")
    variables = server.get("variables")

    def value_of(match: re.Match[str]) -> str:
        variable = variables.get(match[1]) if isinstance(variables, dict) else None
        value = variable.get("default") if isinstance(variable, dict) else None
        if not isinstance(value, str | int):
            raise InvalidTool(f"its server {url!r} needs a value for {match[0]}; {_WAY_OUT}")
        return str(value)

    return _VARIABLE.sub(value_of, url).strip() if isinstance(url, str) else ""


def _plain(url: str) -> str:
    """Return the URL without query, fragment and slashes at its end; InvalidTool for one that cannot be a base."""
    base = re.split(r"[?#]", url, maxsplit=1)[0].rstrip("/")
    try:
        Origin.of(base).target(base)
    except OriginInvalid as error:
        shown = re.sub(r"//[^/@]*@", "//…@", base)  # A password has no place in a message either.
        raise InvalidTool(f"its server {shown!r} {error}; {_WAY_OUT}") from error
    return base
