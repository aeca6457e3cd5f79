"""One job from claim to settlement, and every way in which it can end."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conversations.errors import ModelUnavailable
from jobs.job import JobReference
from results.record import RecordModel
from tests.unit.workers.conftest import RUN, Bench, Benches
from workers.equipment import Equipment

RECIPE = """
model: {provider: offline, model: mock, offline: {turns: 3}}
conversation: {system: "You are {{ name }}."}
tools:
  registry:
    - type: inline
      namespace: weather
      engine: local
      tools:
        - {name: get_weather, parameters: {type: object, properties: {city: {type: string}}, required: [city]}}
  engines: {local: {type: local, module: tests.support.weather_functions, inline: true}}
"""
JOB = {
    "id": "mine",
    "prompt": "Hello {{ name }}",
    "variables": {"name": "Ada"},
    "metadata": {"kind": "test"},
    "seed": 7,
}


async def test_a_job_becomes_one_record_and_is_settled(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        assert await bench.execute() == "ok"
        snapshot = await bench.worker.ledger.progress.snapshot(RUN)
        assert (snapshot.ok, snapshot.pending, snapshot.model_calls, snapshot.tool_calls) == (1, 0, 3, 2)
    (record,) = bench.records()
    RecordModel.model_validate(record)
    assert (record["job_id"], record["index"], record["attempt"], record["status"]) == ("mine", 0, 1, "ok")
    assert (record["seed"], record["metadata"], record["error"]) == (7, {"kind": "test"}, None)
    assert [message["role"] for message in record["messages"]] == [
        "system", "user", "assistant", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert record["messages"][0]["content"] == "You are Ada."
    assert [result["name"] for result in record["tool_results"]] == ["weather::get_weather"] * 2
    assert record["tools"][0]["function"]["name"] == "weather__get_weather"


async def test_f26_the_same_message_again_does_nothing(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        outcomes = await asyncio.gather(*(bench.execute() for _ in range(5)))
        assert sorted(outcomes) == ["busy", "busy", "busy", "busy", "ok"]
        assert await bench.execute() == "done"
    assert len(bench.records()) == 1


async def test_sec_s2_a_message_for_a_job_that_was_never_submitted_starts_nothing(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        assert await bench.execute(99) == "unknown"


async def test_the_same_seed_makes_the_same_conversation(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB, JOB | {"id": "again"}]) as bench:
        assert [await bench.execute(0), await bench.execute(1)] == ["ok", "ok"]
    first, second = bench.records()
    assert first["messages"] == second["messages"]


class Away:
    """A model that cannot be reached."""

    model_id = "mock"

    async def ask(self, _request: Any) -> Any:
        raise ModelUnavailable("the model server is away")


class Around:
    """The real model, with something happening before it is asked."""

    def __init__(self, model: Any, before: Callable[[], Awaitable[None]]) -> None:
        self.model, self.before, self.model_id = model, before, model.model_id

    async def ask(self, request: Any) -> Any:
        await self.before()
        return await self.model.ask(request)


async def equipment_of(bench: Bench) -> Equipment:
    run = await bench.worker.runs.open(RUN)
    return await run.equipment()


async def put(bench: Bench, **parts: Any) -> None:
    """Let the run's next jobs use another model or engine."""
    changed = replace(await equipment_of(bench), **parts)

    async def equipment() -> Equipment:
        return changed

    run = await bench.worker.runs.open(RUN)
    run._equipment = asyncio.create_task(equipment())


async def test_a_model_that_stays_away_postpones_the_job_and_then_fails_it_with_its_type(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await put(bench, model=Away())
        assert await bench.execute() == "later: model_unavailable"
        assert (await bench.worker.ledger.progress.snapshot(RUN)).in_flight == 0
        assert await bench.execute() == "later: model_unavailable"
        assert await bench.execute() == "failed: model_unavailable"
    (record,) = bench.records()
    assert record["error"] == {"type": "model_unavailable", "message": "the model server is away"}
    assert (record["status"], record["attempt"]) == ("failed", 3)
    assert record["messages"][-1]["role"] == "user", "what was there is kept"


async def test_a_worker_without_the_recipes_variable_says_so_in_the_record(benches: Benches) -> None:
    recipe = (
        RECIPE.replace("model: mock", "model: mock, api_key: '${NOT_SET_ANYWHERE}'") + "limits: {max_attempts: 1}\n"
    )
    async with benches.bench(recipe, [JOB]) as bench:
        assert await bench.execute() == "failed: configuration"
    (record,) = bench.records()
    assert "NOT_SET_ANYWHERE" in record["error"]["message"]


async def test_a_job_of_a_cancelled_run_gets_a_cancelled_record(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await bench.worker.ledger.runs.request_cancellation(RUN)
        assert await bench.execute() == "cancelled"
        assert (await bench.worker.ledger.progress.snapshot(RUN)).cancelled == 1
    assert bench.records()[0]["status"] == "cancelled"


async def test_f25_a_job_whose_attempts_were_all_lost_gets_a_dead_record(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        for attempt in range(3):
            await bench.worker.ledger.claims.claim(JobReference(RUN, 0), f"lost-{attempt}")
            await bench.worker.ledger.claims.expire_all(RUN, nonce_prefix="lost-")
            await bench.worker.ledger.sweeping.sweep(RUN, bench.worker.name)
        assert await bench.execute() == "dead: attempts_exhausted"
    assert bench.records()[0]["error"]["type"] == "attempts_exhausted"


async def test_f28_a_draining_worker_puts_an_unclaimed_job_back_and_hands_a_running_one_on(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB, JOB]) as bench:
        bench.worker.draining.begin()
        assert await bench.execute() == "returned"
        bench.worker.draining.has_begun = False
        model = (await equipment_of(bench)).model

        async def drain() -> None:
            bench.worker.draining.begin()

        await put(bench, model=Around(model, drain))
        assert await bench.execute() == "handed back"
        await put(bench, model=model)
        bench.worker.draining.has_begun = False
        assert await bench.execute() == "ok"
        usage = await bench.worker.ledger.progress.snapshot(RUN)
        assert usage.model_calls == 3, "the turn before the hand-over was not asked for again"
    assert bench.records()[0]["attempt"] == 2


async def test_f4_a_job_that_died_after_its_record_settles_without_another_model_call(
    benches: Benches, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:

        async def dies(*_: Any) -> Any:
            raise asyncio.CancelledError

        monkeypatch.setattr(type(bench.worker.ledger.claims), "settle", dies)
        with pytest.raises(asyncio.CancelledError):
            await bench.execute()
        monkeypatch.undo()
        assert len(bench.records()) == 1
        await put(bench, model=Away())
        assert await bench.execute() == "ok"
        assert (await bench.worker.ledger.progress.snapshot(RUN)).ok == 1
    assert len(bench.records()) == 1, "two lines are stored, one record is visible"


async def test_f15_a_store_that_refuses_keeps_the_record_until_it_takes_it(
    benches: Benches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.recording.REWRITE_SECONDS", 0.01)
    async with benches.bench(RECIPE, [JOB]) as bench:
        data = tmp_path / "results" / RUN / "data"
        data.write_text("a file where the folder should be")
        job = asyncio.create_task(bench.execute())
        run = await bench.worker.runs.open(RUN)
        while not run.sink.statistics().failures:
            await asyncio.sleep(0.01)
        assert not job.done()
        assert (await bench.worker.ledger.progress.snapshot(RUN)).pending == 1, (
            "nothing is settled before it is durable"
        )
        data.unlink()
        assert await job == "ok"
    assert len(bench.records()) == 1


async def test_d87_an_error_that_a_tool_gave_is_in_the_record_as_the_model_saw_it(benches: Benches) -> None:
    fault = "error_categories: [{type: network_error, probability: 1, message: the line is dead}]"
    async with benches.bench(RECIPE.replace("inline: true}", f"inline: true, {fault}}}"), [JOB]) as bench:
        assert await bench.execute() == "ok"
    (record,) = bench.records()
    assert {result["error"] for result in record["tool_results"]} == {"the line is dead"}
    told = [message["content"] for message in record["messages"] if message["role"] == "tool"]
    assert len(told) == 2
    assert all("the line is dead" in text for text in told)


async def test_f37_a_teardown_that_fails_is_in_the_record_and_costs_it_nothing(
    benches: Benches, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:

        async def refuses(*_: Any, **__: Any) -> None:
            raise RuntimeError("the backend does not let go")

        monkeypatch.setattr(type((await equipment_of(bench)).engine), "teardown", refuses)
        assert await bench.execute() == "ok"
    assert bench.records()[0]["metadata"]["teardown"] == "failed: RuntimeError: the backend does not let go"


async def test_d12_no_session_is_left_behind_however_the_job_ends(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB, JOB]) as bench:
        equipment = await equipment_of(bench)
        assert await bench.execute(0) == "ok"
        await put(bench, model=Away())
        assert await bench.execute(1) == "later: model_unavailable"
        for index in (0, 1):
            for attempt in (1, 2):
                assert await equipment.engine.get_session_state(f"{RUN}.{index:06d}.{attempt}") is None


async def test_a_claim_lost_while_the_model_spoke_ends_the_attempt_without_a_record(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        model = (await equipment_of(bench)).model

        async def lose_the_claim() -> None:
            await bench.worker.ledger.claims.expire_all(RUN)
            await bench.worker.ledger.sweeping.sweep(RUN, bench.worker.name)

        await put(bench, model=Around(model, lose_the_claim))
        assert await bench.execute() == "lost"
        await put(bench, model=model)
        assert bench.records() == []
        assert await bench.execute() == "ok"
    assert bench.records()[0]["attempt"] == 2


async def interrupted(bench: Bench) -> None:
    """Run the job's first turn and hand it back, as a draining worker does."""
    model = (await equipment_of(bench)).model

    async def drain() -> None:
        bench.worker.draining.begin()

    await put(bench, model=Around(model, drain))
    assert await bench.execute() == "handed back"
    await put(bench, model=model)
    bench.worker.draining.has_begun = False


@pytest.mark.parametrize(("position", "model_calls"), [(0, 3), (1, 3)])
async def test_f38_a_damaged_checkpoint_falls_back_to_what_is_good_and_goes_on_from_there(
    benches: Benches, position: int, model_calls: int
) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await interrupted(bench)
        await interrupted(bench)
        key = f"parley:run:{RUN}:checkpoint:0"
        redis = bench.worker.ledger.scripts.redis
        good = await redis.lindex(key, position)
        assert isinstance(good, bytes)
        await redis.lset(key, position, good[:-20] + b"x" * 20)  # type: ignore[arg-type]
        await interrupted(bench)
        assert await bench.execute() == "ok", "the good deltas after the cut are found again"
    (record,) = bench.records()
    assert record["usage"]["model_calls"] == model_calls
    assert len(record["messages"]) == 7
