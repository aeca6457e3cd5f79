"""DuckDuckGo's page, played by a stand-in."""

from typing import Any

import pytest

from engines.tool import ErrorType
from tests.support.http_backend import Received
from tests.support.stand_in_service import service
from tests.unit.engines.search.searches import result_of

PAGE = """<!DOCTYPE html><html><body><div class="results">
<div class="result result--ad"><h2 class="result__title">
 <a rel="nofollow" class="result__a" href="https://duckduckgo.com/y.js?ad_domain=x.example&amp;u3=1">Buy</a></h2>
 <a class="result__snippet" href="https://duckduckgo.com/y.js?x">An advertisement</a></div>
<div class="result results_links"><h2 class="result__title">
 <a rel="nofollow" class="result__a"
 href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2Fx%3Fq%3D1&amp;rut=9">Fish &amp; <b>Chips</b></a></h2>
 <a class="result__url" href="//x">a.example</a>
 <a class="result__snippet" href="//duckduckgo.com/l/?uddg=x">Eaten in <b>Britain</b>&#x27;s towns.</a></div>
<div class="result"><h2><a class="result__a" href="https://b.example/">Bare</a></h2></div>
<div class="result"><h2><a class="result__a" href="https://c.example/">Third</a></h2>
 <div class="result__snippet">Three</div></div>
</div></body></html>"""


def settings(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "search/web/duckduckgo", "url": f"{url}/html/", **more}


def page(_asked: Received) -> tuple[int, Any]:
    return 200, PAGE


async def test_d84_the_pages_results_are_documents_and_advertisements_are_not() -> None:
    async with service(page) as server:
        found = await result_of(settings(server.url), {"query": "fish & chips"})
    assert found.result == [
        {
            "id": "1",
            "text": "Eaten in Britain's towns.",
            "metadata": {"title": "Fish & Chips", "url": "https://a.example/x?q=1"},
        },
        {"id": "2", "text": "", "metadata": {"title": "Bare", "url": "https://b.example/"}},
        {"id": "3", "text": "Three", "metadata": {"title": "Third", "url": "https://c.example/"}},
    ]


async def test_the_settings_are_parameters_of_the_page() -> None:
    more = {"region": "uk-en", "safesearch": "off", "timelimit": "w", "limit": 1}
    async with service(page) as server:
        found = await result_of(settings(server.url, **more), {"query": "fish & chips"})
    assert len(found.result) == 1
    (asked,) = server.received
    assert (asked.method, asked.path) == ("GET", "/html/")
    assert dict(asked.query) == {"q": "fish & chips", "kl": "uk-en", "kp": "-2", "df": "w"}


async def test_no_query_is_not_sent() -> None:
    async with service(page) as server:
        assert (await result_of(settings(server.url), {})).result == []
    assert server.received == []


@pytest.mark.parametrize(
    ("status", "body", "error_type", "error"),
    [
        (202, "<html>are you human?</html>", ErrorType.network, "answers no more searches from here for now"),
        (403, "no", ErrorType.permission, "DuckDuckGo: HTTP 403: no"),
        (503, "busy", ErrorType.network, "DuckDuckGo: HTTP 503: busy"),
    ],
)
async def test_d84_what_goes_wrong_is_an_error_result(
    status: int, body: str, error_type: ErrorType, error: str
) -> None:
    async with service(lambda _asked: (status, body)) as server:
        found = await result_of(settings(server.url), {"query": "x"})
    assert found.error_type is error_type
    assert error in str(found.error)


@pytest.mark.parametrize("body", ["", "<a class=result__a", '<a class="result__snippet">alone</a>', {"json": 1}])
async def test_a_page_of_another_kind_holds_no_results(body: Any) -> None:
    async with service(lambda _asked: (200, body)) as server:
        assert (await result_of(settings(server.url), {"query": "x"})).result == []
