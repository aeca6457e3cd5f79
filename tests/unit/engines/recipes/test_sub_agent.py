"""What stands in tools and results about the conversations behind them."""

from engines.plain import JSONObject
from engines.recipes.sub_agent import SUB_AGENT, SubAgent, stateful_namespaces, usage_by_tool
from engines.tool import Tool

USED = {"model_calls": 2, "tool_calls": 1, "input_tokens": 20, "output_tokens": 10}


def entry(name: str = "a::x", error: str | None = None, **metadata: object) -> JSONObject:
    return {"name": name, "error": error, "metadata": {SUB_AGENT: USED, **metadata}}


def test_usage_is_summed_up_by_tool() -> None:
    plain: JSONObject = {"name": "w::t", "error": None, "metadata": {}}
    sums = usage_by_tool([entry(), entry(error="no"), plain, entry("a::y")])
    assert sums == {
        "a::x": {"calls": 2, "failed": 1, "model_calls": 4, "tool_calls": 2, "input_tokens": 40, "output_tokens": 20},
        "a::y": {"calls": 1, "failed": 0, **USED},
    }


def test_a_copy_of_another_calls_result_used_nothing() -> None:
    assert usage_by_tool([entry(), entry(duplicate_of="c")], without=["duplicate_of"])["a::x"]["calls"] == 1


def agent(namespace: str, permits: int | None, *below: Tool, is_stateful: bool = True) -> Tool:
    own = {"type": "inline", "namespace": namespace, "tools": [{"name": f"{namespace}::t"}]}
    deeper = {"type": "inline", "namespace": "agents", "tools": [tool.to_dict() for tool in below]}
    settings = {namespace: {"stateful": is_stateful, "max_concurrency": permits}}
    recipe = {"recipe": {"tools": {"registry": [own, deeper], "namespaces": settings}}}
    return Tool("go", "agents", metadata={SUB_AGENT: SubAgent(recipe=recipe, prompt="").model_dump()})


def test_stateful_namespaces_are_found_at_any_depth_with_the_fewest_permits() -> None:
    assert stateful_namespaces([agent("till", 2), Tool("t")]) == {"till": 2}
    assert stateful_namespaces([agent("till", None)]) == {"till": 1}
    assert stateful_namespaces([agent("till", 2, is_stateful=False)]) == {}
    assert stateful_namespaces([agent("desk", 5, agent("till", 3), agent("desk", 4))]) == {"desk": 4, "till": 3}
    assert stateful_namespaces([agent("till", 2), agent("till", 7)]) == {"till": 2}
