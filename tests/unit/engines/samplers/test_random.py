"""The draw of tools by a job's seed."""

import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from engines.configuration import SampleSettings
from engines.errors import ConfigurationInvalid
from engines.registry import ToolRegistry
from engines.samplers.errors import SamplingError
from engines.samplers.sampler import Sampler, build_sampler, check_sample
from engines.tool import Tool
from engines.toolset import Toolset


def made_registry() -> ToolRegistry:
    many = tuple(Tool(f"t{number}", "many") for number in range(30))
    overload = Tool("t0", "many", parameters={"type": "object", "properties": {"x": {}}})
    return ToolRegistry([Toolset("many", None, (*many, overload)), Toolset("few", None, (Tool("a", "few"),))])


def sampler(k: int, **settings: Any) -> Sampler:
    return build_sampler(SampleSettings.model_validate({"type": "tc/random", "k": k, **settings}), made_registry())


def names(tools: list[Tool]) -> list[str]:
    return [tool.qualified_name for tool in tools]


def test_the_same_seed_draws_the_same_tools_and_another_others() -> None:
    first, again, other = (names(sampler(8).sample(seed=seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_any_process_draws_the_same() -> None:
    code = (
        "from tests.unit.engines.samplers.test_random import names, sampler\n"
        "print(names(sampler(8, namespace_weights={'few': 0.1}).sample(seed=7)))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == str(names(sampler(8, namespace_weights={"few": 0.1}).sample(seed=7)))


def test_d81_k_means_exactly_k_different_names() -> None:
    drawn = sampler(31).sample(seed=3)
    assert len(set(names(drawn))) == 31
    with pytest.raises(SamplingError, match=r"tools\.sample\.k: 32 tools asked for, 31 in the registry") as caught:
        sampler(32).sample(seed=3)
    assert (caught.value.requested, len(caught.value.tools)) == (32, 31)


def test_d81_tools_of_one_name_in_two_namespaces_are_both_drawn() -> None:
    registry = ToolRegistry([Toolset(name, None, (Tool("same", name),)) for name in ("a", "b")])
    both = build_sampler(SampleSettings(type="tc/random", k=2), registry).sample(seed=0)
    assert sorted(names(both)) == ["a::same", "b::same"]


def test_d83_a_namespace_is_a_hard_filter_before_weights_and_strategy() -> None:
    only = sampler(1, namespace="few", namespace_weights={"many": 1.0}, strategy="uniform")
    assert names(only.sample(seed=3)) == ["few::a"]
    with pytest.raises(SamplingError, match="2 tools asked for, 1 in namespace 'few'"):
        only.sample(seed=3, k=2)


def test_d83_a_namespace_of_weight_nothing_is_never_drawn() -> None:
    heavy = sampler(30, namespace_weights={"many": 1.0, "few": 0.0})
    assert all(not name.startswith("few") for name in names(heavy.sample(seed=1)))
    with pytest.raises(SamplingError, match="31 tools asked for, 30"):
        heavy.sample(seed=1, k=31)


def test_d83_a_small_namespace_has_its_chance_beside_a_large_one() -> None:
    counted = Counter(name for seed in range(600) for name in names(sampler(8).sample(seed=seed)))
    expected = 600 * 8 / 31
    assert all(0.6 * expected < counted[name] < 1.4 * expected for name in ("few::a", "many::t0", "many::t29"))


def test_settings_that_mean_nothing_to_the_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="min_score means nothing to tc/random; remove it"):
        SampleSettings(type="tc/random", k=2, min_score=0.5)
    with pytest.raises(ValueError, match="strategy means nothing to tc/chain; remove it"):
        SampleSettings(type="tc/chain", k=2, strategy="uniform")
    with pytest.raises(ValueError, match="must have a weight above 0"):
        SampleSettings(type="tc/random", k=2, namespace_weights={"a": 0.0})


def test_stored_settings_read_back() -> None:
    for written in ({"type": "tc/random", "k": 3}, {"type": "tc/dag", "k": 3, "min_score": 0.5}):
        settings = SampleSettings.model_validate(written)
        assert SampleSettings.model_validate(settings.model_dump(mode="json")) == settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"namespace": "man"}, r"tools\.sample\.namespace: no tools in namespace 'man'; did you mean 'many'\?"),
        ({"namespace_weights": {"feww": 1}}, r"tools\.sample\.namespace_weights: no tools in namespace 'feww'"),
        ({"k": 40}, r"tools\.sample\.k: 40 tools asked for, 31 in the registry; lower k"),
    ],
)
def test_a_draw_that_no_job_could_have_is_refused_at_submit(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=message):
        check_sample(SampleSettings.model_validate({"type": "tc/random", "k": 2, **settings}), made_registry())
