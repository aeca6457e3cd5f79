"""Paused jobs and a ledger that was lost: they wait on as they were, with the answers that they have."""

from collections.abc import Iterator

import pytest

from jobs.job import JobReference
from jobs.ledger import Ledger
from jobs.paused import new_answers_key, paused_key, write_answers
from producer.feeder import Feeder
from producer.paused_jobs import restore_paused
from results.async_store import AsyncStore
from results.store import open_store
from tests.support import diary_functions
from tests.unit.workers.conftest import RUN, Bench, Benches
from tests.unit.workers.test_pausing import JOB, RECIPE, answer, asking, says, speaking


@pytest.fixture(autouse=True)
def _sessions_are_torn_down() -> Iterator[None]:
    yield
    assert not diary_functions.OPEN


async def lose_ledger(benches: Benches, bench: Bench) -> None:
    """Redis is wiped, and the feeder enters the run again."""
    with benches.server.client() as client:
        client.flushall()
    async with AsyncStore(open_store(bench.results)) as store:
        feeder = Feeder(bench.worker.ledger, store, bench.manifest, bench.results, quiet_seconds=0)
        await feeder.register()
        assert await bench.worker.ledger.feeding.take_lease(RUN, feeder.token)
        await feeder.top_up(await bench.worker.ledger.progress.snapshot(RUN))


async def test_c3_a_job_that_was_paused_when_the_ledger_was_lost_waits_on_and_takes_its_answers(
    benches: Benches,
) -> None:
    async with benches.bench(RECIPE, [JOB, JOB]) as bench:
        model = await speaking(bench, asking("a", "b"))
        assert await bench.execute() == "paused"
        assert await answer(bench, a={"said": "before"}) == "waiting"
        await lose_ledger(benches, bench)
        externals = bench.worker.ledger.externals
        assert await externals.paused(RUN) == [0]
        awaited = await externals.awaited(JobReference(RUN, 0))
        assert awaited is not None
        assert {call: key is None for call, key in awaited.calls.items()} == {"a": False, "b": True}
        assert await answer(bench, b={"said": "after"}) == "resumed"
        model.script.append(says("done"))
        assert await bench.execute() == "ok"
    assert [e["result"]["said"] for e in bench.records()[0]["tool_results"]] == ["before", "after"]


async def test_c3_of_two_answers_to_a_call_the_earlier_one_wins_after_a_loss_too(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await speaking(bench, asking("a"), says("done"))
        await bench.execute()
        store = open_store(bench.results)
        keys = [new_answers_key(RUN, 0, at) for at in (20.0, 10.0)]
        for key, said in zip(keys, ("second", "first"), strict=True):
            write_answers(store, key, {"a": {"result": {"said": said}}})
        await lose_ledger(benches, bench)
        assert await bench.execute() == "ok"
    assert bench.records()[0]["tool_results"][0]["result"] == {"said": "first"}


async def test_c3_a_job_that_is_done_is_not_paused_again(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await speaking(bench, asking("a"), says("done"))
        await bench.execute()
        await answer(bench, a={"said": "yes"})
        assert await bench.execute() == "ok"
        await lose_ledger(benches, bench)
        assert (await bench.worker.ledger.progress.snapshot(RUN)).ok == 1
        assert await bench.worker.ledger.externals.paused(RUN) == []


async def test_c3_a_state_that_cannot_be_read_begins_again(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await speaking(bench, asking("a"))
        await bench.execute()
        open_store(bench.results).put(paused_key(RUN, 0, 1), b"garbage")
        with benches.server.client() as client:
            client.flushall()
        ledger: Ledger = bench.worker.ledger
        async with AsyncStore(open_store(bench.results)) as store:
            await Feeder(ledger, store, bench.manifest, bench.results).register()
            assert await restore_paused(ledger.externals, store, bench.manifest) == 0
