"""The checks that the tools of a conversation ask for (rule U18)."""

from typing import Any

from conversations.policy.evaluation import evaluation_checks


def entry(name: str, **metadata: Any) -> dict[str, Any]:
    return {"call_id": name, "name": name, "result": 1, "error": None, "error_type": None, "metadata": metadata}


def test_u18_checks_of_tools_that_ran_are_collected_once_and_sorted() -> None:
    wanted = {"w::a": ["relevance", "hallucination"], "w::b": ["relevance"], "w::c": ["never"], "w::d": ["refused"]}
    results = [entry("w::b"), entry("w::a"), entry("w::b"), entry("w::x"), entry("w::d", not_run=True)]
    assert evaluation_checks(results, wanted) == ["hallucination", "relevance"]
    assert evaluation_checks([], wanted) == []
