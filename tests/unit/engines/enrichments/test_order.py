"""The order of enrichments."""

from dataclasses import dataclass

import pytest

from engines.enrichments.enrichment import Enrichment, Material
from engines.enrichments.order import ordered
from engines.errors import ConfigurationInvalid


@dataclass(frozen=True)
class Step:
    """An enrichment that does nothing."""

    artifact_key: str | None
    depends_on: tuple[str, ...] = ()
    reads_outputs: bool = False

    async def enrich(self, material: Material) -> None:
        """Do nothing."""


def keys(enrichments: list[Enrichment]) -> list[str | None]:
    return [each.artifact_key for each in enrichments]


def test_d76_what_is_needed_runs_first_however_it_is_written() -> None:
    assert keys(ordered([Step("c", ("b",)), Step("b", ("a",)), Step("a")])) == ["a", "b", "c"]
    assert keys(ordered([Step("x"), Step("y"), Step("z")])) == ["x", "y", "z"]


def test_d76_what_completes_the_tools_runs_before_what_reads_them() -> None:
    assert keys(ordered([Step("flow", reads_outputs=True), Step("other"), Step(None)])) == ["other", None, "flow"]


def test_d76_a_need_that_nobody_meets_is_an_error() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"tools\.enrichments\[1\]: it needs the artifact 'a', which none"):
        ordered([Step("b"), Step("c", ("a",))])


def test_d76_a_circle_is_an_error() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"tools\.enrichments\[1\]: .* in a circle: b, c"):
        ordered([Step("a"), Step("b", ("c",)), Step("c", ("b",))])


def test_d76_two_producers_of_one_key_are_an_error() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"tools\.enrichments\[1\]: the artifact 'a' has two producers"):
        ordered([Step("a"), Step("a")])
    assert keys(ordered([Step(None), Step(None)])) == [None, None]
