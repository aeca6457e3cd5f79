"""A run's equipment: its engines share results with those of runs that reach the same backends with the same rights."""

from engines.tool import ToolCall
from tests.unit.workers.conftest import Bench, Benches
from tests.unit.workers.test_execute import JOB, RECIPE, equipment_of

FAULT = "error_categories: [{type: network_error, probability: 0, message: '${TOKEN}'}]"
CACHING = "  namespaces: {weather: {cache: {shared: true}}}\n"
TOKENED = (
    RECIPE.replace("inline: true}", f"inline: true, {FAULT}}}").replace(
        "[city]}}", "[city]}, metadata: {read_only: true}}"
    )
    + CACHING
)


async def was_cached(bench: Bench) -> bool:
    """Say whether this worker's first call was answered by what another one keeps."""
    engine = (await equipment_of(bench)).engine
    await engine.setup("s")
    (result,) = await engine.execute("s", [ToolCall("get_weather", "weather", {"city": "Lisbon"}, "c1")])
    await engine.teardown("s")
    assert result.error is None
    return bool(result.metadata.get("cached"))


async def test_results_are_shared_by_workers_whose_references_have_the_same_values(benches: Benches) -> None:
    async with (
        benches.bench(TOKENED, [JOB], environment={"TOKEN": "one"}) as bench,
        benches.another(bench, environment={"TOKEN": "one"}) as alike,
        benches.another(bench, environment={"TOKEN": "two"}) as different,
    ):
        assert [await was_cached(each) for each in (bench, alike, different)] == [False, True, False]
