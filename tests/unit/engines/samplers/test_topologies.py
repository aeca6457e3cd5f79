"""Chains, fans and other shapes of the dataflow."""

import itertools
from collections import Counter
from typing import Any

import pytest

from engines.configuration import SampleSettings
from engines.errors import ConfigurationInvalid
from engines.samplers.errors import SamplingError
from engines.samplers.kinds import SAMPLER_KINDS
from engines.samplers.sampler import artifacts_to_pin, build_sampler
from tests.unit.engines.samplers.drawing import drawn, registry_of, sampler_of

LINE = {"a": {"b": 0.9}, "b": {"c": 0.9}, "c": {"d": 0.9}}
STAR = {"hub": {"x": 0.9, "y": 0.5, "z": 0.1}, "x": {"y": 0.2}}


@pytest.mark.parametrize("kind", [name for name, kind in SAMPLER_KINDS.items() if kind.required_artifacts])
def test_d80_a_missing_artifact_is_an_error_when_the_sampler_is_built(kind: str) -> None:
    settings = SampleSettings.model_validate({"type": kind, "k": 2})
    needed = SAMPLER_KINDS[kind].required_artifacts[0]
    with pytest.raises(ConfigurationInvalid, match=rf"{kind} needs the artifact '{needed}'; add `- type: {needed}`"):
        build_sampler(settings, registry_of(["a", "b"]))


@pytest.mark.parametrize("kind", SAMPLER_KINDS)
def test_the_same_seed_draws_the_same_shape_and_seeds_differ(kind: str) -> None:
    edges = {f"t{i}": {f"t{j}": 0.5 for j in range(8) if j != i} for i in range(8)}
    sampler = sampler_of(edges, kind, 4)
    draws = [drawn(sampler, seed) for seed in range(20)]
    assert draws == [drawn(sampler, seed) for seed in range(20)]
    assert all(len(set(names)) == 4 for names in draws)
    assert len({tuple(names) for names in draws}) > 5


def test_d82_a_chain_follows_the_dataflow_and_visits_nothing_twice() -> None:
    circle = {"a": {"b": 0.9, "c": 0.3}, "b": {"a": 0.9, "c": 0.9}, "c": {"a": 0.9}}
    for seed in range(30):
        chain = drawn(sampler_of(circle, "tc/chain", 3), seed)
        assert len(set(chain)) == 3
        assert all(second in circle[first] for first, second in itertools.pairwise(chain))


def test_d82_a_chain_is_found_though_most_walks_end_early() -> None:
    assert {tuple(drawn(sampler_of(LINE, "tc/chain", 4), seed)) for seed in range(10)} == {("a", "b", "c", "d")}


def test_d82_a_dead_end_is_walked_back_from() -> None:
    fork = {"a": {"dead end": 0.9, "b": 0.1}, "b": {"c": 0.5}}
    assert {tuple(drawn(sampler_of(fork, "tc/chain", 3), seed)) for seed in range(10)} == {("a", "b", "c")}


def test_d82_strong_edges_are_walked_more_often() -> None:
    fork = {"a": {"strong": 0.9, "weak": 0.1}}
    ends = Counter(drawn(sampler_of(fork, "tc/chain", 2), seed)[1] for seed in range(400))
    assert 320 < ends["strong"] < 390


def test_d81_a_chain_that_is_too_short_is_an_error_with_what_was_found() -> None:
    with pytest.raises(SamplingError, match="a chain of 5 tools asked for, the longest found has 4") as caught:
        sampler_of(LINE, "tc/chain", 5).sample(seed=0)
    assert caught.value.requested == 5
    assert [tool.name for tool in caught.value.tools] == ["a", "b", "c", "d"]


def test_a_chain_in_a_dense_graph_without_one_gives_up_in_time() -> None:
    edges: dict[str, dict[str, float]] = {f"t{i}": {f"t{j}": 0.5 for j in range(25) if j != i} for i in range(25)}
    with pytest.raises(SamplingError, match="the longest found has 25"):
        sampler_of(edges, "tc/chain", 26).sample(seed=0)


def test_d82_fan_out_begins_with_the_tool_that_feeds_the_others() -> None:
    for seed in range(10):
        first, *others = drawn(sampler_of(STAR, "tc/fan_out", 3), seed)
        assert first == "hub"
        assert set(others) < {"x", "y", "z"}


def test_d82_fan_in_ends_with_the_tool_that_the_others_feed() -> None:
    for seed in range(10):
        *others, last = drawn(sampler_of(STAR, "tc/fan_in", 3), seed)
        assert last == "y"
        assert set(others) == {"hub", "x"}


@pytest.mark.parametrize(("kind", "others"), [("tc/fan_out", "successors"), ("tc/neighbor", "neighbors")])
def test_d81_too_few_others_are_an_error_with_the_best_that_there_is(kind: str, others: str) -> None:
    with pytest.raises(
        SamplingError, match=rf"a tool with 4 {others} asked for, the most that one has are 3"
    ) as caught:
        sampler_of(STAR, kind, 5).sample(seed=0)
    assert [tool.name for tool in caught.value.tools] == ["hub", "x", "y", "z"]


@pytest.mark.parametrize("kind", ["tc/fan_out", "tc/fan_in", "tc/dag", "tc/neighbor"])
def test_d82_a_shape_of_one_tool_is_none(kind: str) -> None:
    with pytest.raises(ValueError, match=rf"{kind} draws at least 2 tools; raise k"):
        SampleSettings.model_validate({"type": kind, "k": 1})


def test_d82_edges_below_min_score_are_not_walked() -> None:
    assert drawn(sampler_of(STAR, "tc/fan_out", 3, min_score=0.5), 1)[1:] in (["x", "y"], ["y", "x"])
    with pytest.raises(SamplingError, match="lower k or min_score"):
        sampler_of(STAR, "tc/fan_out", 4, min_score=0.5).sample(seed=1)


def test_d82_a_namespace_keeps_the_shape_inside() -> None:
    index = {"a::x": [["b::y", 0.9], ["a::z", 0.1]]}
    registry = registry_of(["a::x", "b::y", "a::z"], {"dataflow": {"out": index, "in": {}}})
    sampler = build_sampler(SampleSettings(type="tc/chain", k=2, namespace="a"), registry)
    assert {tuple(drawn(sampler, seed)) for seed in range(20)} == {("x", "z")}


def test_d82_settings_of_one_draw_win_and_unknown_ones_are_ignored() -> None:
    sampler = sampler_of(STAR, "tc/fan_out", 4)
    assert len(drawn(sampler, 1, k=2, temperature=0.7)) == 2
    assert len(drawn(sampler, 1)) == 4
    with pytest.raises(ValueError, match="at least 2"):
        sampler.sample(seed=1, k=1)


def test_a_dag_is_connected_and_in_an_order_in_which_it_can_be_called() -> None:
    edges = {"a": {"c": 0.5, "d": 0.4}, "b": {"c": 0.9}, "c": {"e": 0.8}, "d": {"e": 0.3}, "e": {}}
    shapes = set()
    for seed in range(40):
        names = drawn(sampler_of(edges, "tc/dag", 4), seed)
        shapes.add(frozenset(names))
        position = {name: place for place, name in enumerate(names)}
        inside = [(one, other) for one in edges for other in edges[one] if one in position and other in position]
        assert all(position[one] < position[other] for one, other in inside), names
        assert {name for edge in inside for name in edge} == set(names)
    assert len(shapes) > 2


def test_a_dag_of_tools_that_feed_each_other_has_no_circle() -> None:
    both_ways = {"a": {"b": 0.9}, "b": {"a": 0.8, "c": 0.7}, "c": {"a": 0.6}}
    for seed in range(20):
        assert sorted(drawn(sampler_of(both_ways, "tc/dag", 3), seed)) == ["a", "b", "c"]


def test_d81_a_dag_larger_than_any_piece_is_an_error() -> None:
    with pytest.raises(SamplingError, match="3 connected tools asked for, the most found are 2") as caught:
        sampler_of({"a": {"b": 0.9}, "c": {"d": 0.9}}, "tc/dag", 3).sample(seed=0)
    assert len(caught.value.tools) == 2


def test_a_job_with_fewer_tools_than_k_is_offered_all_and_one_with_more_draws_among_its_own() -> None:
    sampler = sampler_of(LINE, "tc/chain", 3)
    tools = {tool.name: tool for tool in sampler.registry}
    assert sampler.for_job([tools["d"], tools["a"]])(1) == [tools["d"], tools["a"]]
    assert [tool.name for tool in sampler.for_job([tools["d"], tools["b"], tools["c"]])(1)] == ["b", "c", "d"]
    with pytest.raises(SamplingError):
        sampler.for_job([tools["a"], tools["c"], tools["d"]])(1)


@pytest.mark.parametrize("kind", ["tc/chain", "tc/fan_in", "tc/neighbor", "tc/random"])
def test_what_is_pinned_is_enough_to_draw_the_same(kind: str) -> None:
    sampler = sampler_of(STAR, kind, 2)
    pinned: dict[str, Any] = artifacts_to_pin(sampler.settings, sampler.registry)
    elsewhere = registry_of([tool.qualified_name for tool in sampler.registry], pinned)
    again = build_sampler(sampler.settings, elsewhere)
    assert [drawn(again, seed) for seed in range(9)] == [drawn(sampler, seed) for seed in range(9)]
    assert artifacts_to_pin(None, sampler.registry) == {}
