"""What all search engines do alike."""

from typing import Any

import pytest

from engines.errors import ConfigurationInvalid
from engines.tool import ErrorType, ToolCall
from tests.unit.engines.search.searches import CORPUS, engine_of, ids_of, result_of, results_of

MEMORY: dict[str, Any] = {"type": "search/in_memory", "corpus": CORPUS}


async def test_d84_documents_have_id_text_score_and_metadata() -> None:
    (document,) = (await result_of(MEMORY, {"query": "Norway's capital"})).result
    assert document == {
        "id": "oslo",
        "text": "Oslo is the capital of Norway.",
        "score": document["score"],
        "metadata": {"topic": "cities"},
    }
    assert document["score"] > 1


@pytest.mark.parametrize(
    ("settings", "arguments", "number"),
    [
        ({}, {}, 4),
        ({"limit": 2}, {}, 2),
        ({"limit": 2}, {"limit": 3}, 3),
        ({"limit": 2}, {"limit": 3, "size": 1}, 1),
        ({"limit": 2}, {"limit": 3, "size": None}, 3),
        ({"max_limit": 3}, {"size": 1000}, 3),
        ({"max_limit": 1}, {}, 1),
    ],
)
async def test_d84_size_wins_over_limit_over_the_setting(
    settings: dict[str, Any], arguments: dict[str, Any], number: int
) -> None:
    assert len(await ids_of({**MEMORY, **settings}, {"query": "day night Norway", **arguments})) == min(number, 4)


async def test_d84_the_limit_is_five_by_default() -> None:
    corpus = [{"id": str(number), "text": "same"} for number in range(9)]
    assert len(await ids_of({"type": "search/in_memory", "corpus": corpus}, {"query": "same"})) == 5


@pytest.mark.parametrize("size", [0, -1, "3", 2.5, True, [1]])
async def test_a_size_that_is_no_number_of_documents_is_told(size: Any) -> None:
    result = await result_of(MEMORY, {"query": "cats", "size": size})
    assert result.error_type is ErrorType.validation
    assert result.error == f"size must be a whole number of 1 or more, got {size!r}"


async def test_a_query_that_is_no_text_is_told() -> None:
    result = await result_of(MEMORY, {"query": ["cats"]})
    assert (result.error_type, result.error) == (ErrorType.validation, "query must be text, got ['cats']")


async def test_d84_what_scores_below_the_threshold_is_left_out_and_what_has_no_score_stays() -> None:
    everything = (await result_of(MEMORY, {"query": "cats who hunt"})).result
    best, *others = (document["score"] for document in everything)
    assert others
    assert all(score < best for score in others)
    assert await ids_of({**MEMORY, "relevance_threshold": best - 0.01}, {"query": "cats who hunt"}) == ["cats"]
    assert len(await ids_of({**MEMORY, "relevance_threshold": 99}, {})) == 4


async def test_d84_without_a_query_documents_come_by_the_conversations_chance() -> None:
    drawn = [await ids_of({**MEMORY, "limit": 2}, {}, seed=seed) for seed in range(12)]
    assert drawn == [await ids_of({**MEMORY, "limit": 2}, {}, seed=seed) for seed in range(12)]
    assert len({tuple(ids) for ids in drawn}) > 3
    first, second = await results_of(engine_of(MEMORY), {"size": 3}, {"size": 3})
    assert first.result != second.result
    assert "score" not in first.result[0]


async def test_another_argument_may_hold_the_query() -> None:
    assert await ids_of({**MEMORY, "query_argument": "q"}, {"q": "Oslo", "query": "Rome"}) == ["oslo"]


@pytest.mark.parametrize(
    ("category", "result", "error", "error_type"),
    [
        ({"type": "empty_result"}, [], None, None),
        ({"type": "unparseable_result"}, "<garbled>", None, None),
        ({"type": "network_error", "message": "line is down"}, None, "line is down", ErrorType.network),
        ({"type": "quota_used_up"}, None, "Simulated error: quota_used_up", ErrorType.execution),
        ({"type": "schema_violation"}, None, "Simulated error: schema_violation", ErrorType.schema_violation),
        ({"type": "quota", "message": "no more"}, None, "no more", ErrorType.execution),
        ({"type": "rate_limited"}, None, "Rate limit exceeded", ErrorType.network),
        ({"type": "index_not_found"}, None, "Simulated error: index_not_found", ErrorType.execution),
    ],
)
async def test_d34_faults_on_purpose_are_told_as_a_search_tells_them(
    category: dict[str, Any], result: Any, error: str | None, error_type: ErrorType | None
) -> None:
    found = await result_of({**MEMORY, "error_categories": [{"probability": 1, **category}]}, {"query": "cats"})
    assert (found.result, found.error, found.error_type) == (result, error, error_type)
    assert found.metadata["injected"] == category["type"]


async def test_d16_a_search_is_simulated_live_and_leaves_no_trace() -> None:
    engine = engine_of(MEMORY)
    await engine.setup("session")
    (result,) = await engine.simulate("session", [ToolCall("search", "docs", {"query": "Oslo"})])
    assert [document["id"] for document in result.result] == ["oslo"]
    assert await engine.get_session_state("session") == {"history": [], "scratch": {}}
    await engine.teardown("session")
    await engine.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"type": "search/in_memory"}, r"tools\.engines\.s\.corpus: this key is needed"),
        ({"type": "search/in_memory", "corpus": []}, "nothing to search"),
        ({**MEMORY, "limits": 3}, r"tools\.engines\.s\.limits: unknown key 'limits'; did you mean 'limit'\?"),
        ({**MEMORY, "limit": 0}, r"tools\.engines\.s\.limit: "),
    ],
)
def test_wrong_settings_are_an_error_at_their_place(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=message):
        engine_of(settings)
