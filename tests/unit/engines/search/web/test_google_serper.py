"""serper.dev, played by a stand-in."""

from typing import Any

import pytest

from engines.errors import ConfigurationInvalid
from engines.tool import ErrorType
from tests.support.http_backend import Received
from tests.support.stand_in_service import service
from tests.unit.engines.search.searches import engine_of, result_of

HITS = {
    "organic": [
        {"title": "Apple", "link": "https://b.example", "snippet": "two", "position": 2},
        {"title": "Zebra", "link": "https://a.example", "snippet": "one", "position": 1},
        {"title": "Somewhere", "link": "https://c.example"},
        "no hit at all",
    ]
}


def settings(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "search/web/google_serper", "url": f"{url}/search", "serper_api_key": "sesame", **more}


def google(_asked: Received) -> tuple[int, Any]:
    return 200, HITS


async def test_d84_results_come_by_their_position_as_documents() -> None:
    async with service(google) as server:
        found = await result_of(settings(server.url, gl="no", hl="nb"), {"query": "fjords", "size": 3})
    assert found.result == [
        {"id": "1", "text": "one", "metadata": {"title": "Zebra", "url": "https://a.example"}},
        {"id": "2", "text": "two", "metadata": {"title": "Apple", "url": "https://b.example"}},
        {"id": "3", "text": "", "metadata": {"title": "Somewhere", "url": "https://c.example"}},
    ]
    (asked,) = server.received
    assert (asked.method, asked.path) == ("POST", "/search")
    assert asked.json == {"q": "fjords", "gl": "no", "hl": "nb", "num": 3}
    assert asked.header("x-api-key") == "sesame"


async def test_no_query_is_not_sent() -> None:
    async with service(google) as server:
        assert (await result_of(settings(server.url), {"query": " "})).result == []
    assert server.received == []


@pytest.mark.parametrize(
    ("status", "body", "error_type"),
    [
        (403, {"message": "Unauthorized."}, ErrorType.permission),
        (429, {"message": "slow down"}, ErrorType.network),
        (200, {"organic": "none"}, ErrorType.unparseable_result),
        (200, [], ErrorType.unparseable_result),
    ],
)
async def test_d84_what_goes_wrong_is_an_error_result(status: int, body: Any, error_type: ErrorType) -> None:
    async with service(lambda _asked: (status, body)) as server:
        found = await result_of(settings(server.url), {"query": "x"})
    assert found.error_type is error_type
    assert "sesame" not in str(found.error)


def test_without_an_account_the_way_out_is_told() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"give serper_api_key, for example \$\{SERPER_API_KEY\}"):
        engine_of({"type": "search/web/google_serper"})
