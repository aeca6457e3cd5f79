"""Fetches one document over HTTP for loaders, which are plain functions: in a loop and a thread of its own."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from engines.network.addresses import Resolver, system_resolver
from engines.network.answers import Answer
from engines.network.connection import ConnectionSettings
from engines.network.failures import FailureKind, NetworkFailure
from engines.network.http_client import HttpClient
from engines.network.origins import Origin, OriginInvalid

DOCUMENT_TIMEOUT_SECONDS = 10.0
_OK = range(200, 300)
_REDIRECTS = range(300, 400)


def fetch_document(
    url: str, settings: ConnectionSettings, *, resolver: Resolver = system_resolver
) -> tuple[bytes, str]:
    """Return the document's bytes and its media type (lower case, no parameters); blocks, also inside a running loop.

    `url` is the operator's own, as a recipe has it; never one that another document gave.
    Credentials go along when the document is of the origin of `settings.url`. NetworkFailure says why there is none.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="fetch-document") as threads:
        answer = threads.submit(asyncio.run, _fetched(url, settings, resolver)).result()
    return answer.body, answer.content_type


async def _fetched(url: str, settings: ConnectionSettings, resolver: Resolver) -> Answer:
    origin = Origin.of(url)
    client = HttpClient(
        settings, origin, is_configured=True, timeout_seconds=DOCUMENT_TIMEOUT_SECONDS, resolver=resolver
    )
    async with client:
        answer = await client.request("GET", url, headers=[("accept", "application/json, application/yaml, */*;q=0.5")])
    if answer.status in _OK:
        return answer
    if answer.status in _REDIRECTS:
        cause = (
            f"it is elsewhere ({_place(answer, origin)}), and redirects are not followed; give the document's own URL"
        )
        raise NetworkFailure(FailureKind.protocol, f"{origin.authority}: HTTP {answer.status}: {cause}")
    raise NetworkFailure(FailureKind.protocol, f"{origin.authority}: HTTP {answer.status} instead of the document")


def _place(answer: Answer, origin: Origin) -> str:
    """Return where a redirect leads, without its query."""
    place = answer.headers.get("location", "")
    try:
        found = Origin.of(place)
        return f"{found}{found.target(place).partition('?')[0]}"[:200]
    except OriginInvalid:
        return f"{origin}{place.partition('?')[0]}"[:200] if place.startswith("/") else "nowhere that can be read"
