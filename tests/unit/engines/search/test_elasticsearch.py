"""Elasticsearch, played by a stand-in that answers as its REST API does."""

from typing import Any

import pytest

from engines.errors import ConfigurationInvalid
from engines.tool import ErrorType
from tests.support.http_backend import Received
from tests.support.stand_in_service import service
from tests.unit.engines.search.searches import engine_of, ids_of, result_of

NO_INDEX = {"error": {"type": "index_not_found_exception", "reason": "no such index [x]"}, "status": 404}


def cluster(asked: Received) -> tuple[int, Any]:
    """Answer as a cluster with one index does."""
    if asked.path != "/es/books/_search":
        return 404, NO_INDEX
    hits = [
        {"_id": "1", "_score": 2.5, "_source": {"text": "Moby-Dick", "year": 1851}},
        {"_id": "2", "_score": 1.25, "_source": {"text": "Emma", "id": "own"}},
        {"_id": "3", "_score": None, "_source": {"text": "Ulysses"}},
    ]
    return 200, {"took": 3, "hits": {"total": {"value": 3}, "hits": hits}}


def settings(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "search/elasticsearch", "url": f"{url}/es", "index": "books", **more}


async def test_d84_a_query_is_a_match_in_the_index_and_hits_are_documents() -> None:
    async with service(cluster) as server:
        found = await result_of(settings(server.url), {"query": "whale", "size": 2})
    assert found.result == [
        {"id": "1", "text": "Moby-Dick", "score": 2.5, "metadata": {"year": 1851}},
        {"id": "own", "text": "Emma", "score": 1.25},
    ]
    (asked,) = server.received
    assert (asked.method, asked.target) == ("POST", "/es/books/_search")
    assert asked.json == {"query": {"match": {"text": {"query": "whale"}}}, "size": 2}


async def test_d84_the_threshold_keeps_what_has_no_score() -> None:
    async with service(cluster) as server:
        assert await ids_of(settings(server.url, relevance_threshold=2), {"query": "whale"}) == ["1", "3"]


async def test_several_fields_and_no_query() -> None:
    async with service(cluster) as server:
        await result_of(settings(server.url, fields=["title", "text"]), {"query": "whale"})
        await result_of(settings(server.url), {})
    assert [asked.json["query"] for asked in server.received] == [
        {"multi_match": {"query": "whale", "fields": ["title", "text"]}},
        {"match_all": {}},
    ]


async def test_d84_an_index_that_the_cluster_does_not_have_is_told() -> None:
    async with service(cluster) as server:
        found = await result_of(settings(server.url, indices=["films"]), {"query": "x", "index": "films"})
    assert (found.error, found.error_type) == ("Index 'films' does not exist", ErrorType.execution)
    assert len(server.received) == 1


@pytest.mark.parametrize(
    "index", ["films", "*", "_all", "books,secrets", "../_cluster/settings", ".security", 7, ["books"]]
)
async def test_sec_s5_a_call_reaches_no_index_that_the_recipe_does_not_name(index: Any) -> None:
    async with service(cluster) as server:
        found = await result_of(settings(server.url), {"query": "x", "index": index})
    assert found.error == f"Index '{index}' does not exist"
    assert server.received == []


async def test_d34_an_index_that_is_not_found_on_purpose() -> None:
    faulty = settings("http://127.0.0.1:9", error_categories=[{"type": "index_not_found", "probability": 1}])
    assert (await result_of(faulty, {"query": "x"})).error == "Index 'books' does not exist"
    assert (await result_of(faulty, {"query": "x", "index": "films"})).error == "Index 'films' does not exist"


async def test_credentials_go_with_each_request() -> None:
    key = {"name": "Authorization", "value": "ApiKey c2VzYW1l"}
    async with service(cluster) as server:
        await result_of(settings(server.url, api_key=key), {"query": "x"})
    assert server.received[0].header("authorization") == "ApiKey c2VzYW1l"


@pytest.mark.parametrize(
    ("status", "body", "error_type", "error"),
    [
        (401, {"error": "security"}, ErrorType.permission, "Elasticsearch: HTTP 401"),
        (400, {"error": "parsing"}, ErrorType.execution, "Elasticsearch: HTTP 400"),
        (503, "busy", ErrorType.network, "Elasticsearch: HTTP 503: busy"),
        (404, "elsewhere", ErrorType.execution, "Elasticsearch: HTTP 404"),
        (200, [], ErrorType.unparseable_result, "the answer holds no hits"),
        (200, {"hits": {"hits": "many"}}, ErrorType.unparseable_result, "the answer holds no hits"),
        (200, "<html>", ErrorType.unparseable_result, "the answer holds no hits"),
    ],
)
async def test_d84_what_goes_wrong_is_an_error_result(
    status: int, body: Any, error_type: ErrorType, error: str
) -> None:
    async with service(lambda _asked: (status, body)) as server:
        found = await result_of(settings(server.url), {"query": "x"})
    assert found.error_type is error_type
    assert error in str(found.error)


async def test_d84_a_cluster_that_is_not_there_is_an_error_result() -> None:
    async with service(cluster) as gone:
        pass
    found = await result_of(settings(gone.url), {"query": "x"})
    assert found.error_type is ErrorType.network
    assert "127.0.0.1" in str(found.error)


@pytest.mark.parametrize("index", ["*", "_all", "Books", "a,b", "", "a b", "../x", "-x"])
def test_the_recipe_names_one_index(index: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"tools\.engines\.s\.index: .* is not the name of one index"):
        engine_of(settings("http://localhost:9200", index=index))
