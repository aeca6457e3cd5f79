"""Whoever is told of pauses by a webhook: after they are durable, a few times at most, and nothing depends on it."""

import asyncio
from typing import Any

from tests.support.http_backend import HttpBackend, Received, Reply, http_backend
from tests.unit.workers.conftest import RUN, Benches
from tests.unit.workers.test_pausing import JOB, RECIPE, answer, asking, says, speaking


async def test_s7_a_webhook_is_told_of_the_structured_calls_once_the_pause_is_durable(benches: Benches) -> None:
    async def take(_: Received) -> Reply:
        return Reply({}, status=503 if len(backend.received) == 1 else 200)

    backend: HttpBackend
    async with http_backend(take) as backend:
        connection = f"{{url: '{backend.url}/hook', allow_addresses: [127.0.0.1], bearer_token: abc}}"
        recipe = RECIPE.replace("deadline_seconds: 3600", f"deadline_seconds: null, webhook: {connection}")
        async with benches.bench(recipe, [JOB]) as bench:
            await speaking(bench, asking("a"))
            assert await bench.execute() == "paused"
            run = await bench.worker.runs.open(RUN)
            await asyncio.gather(*run._background)
        assert len(backend.received) == 2, "it was away for a moment"
        assert backend.last.header("authorization") == "Bearer abc"
        assert backend.last.json == {
            "run_id": RUN,
            "job_id": "mine",
            "index": 0,
            "calls": [{"call_id": "a", "name": "desk::ask", "arguments": {"what": "a"}, "seconds": None}],
        }


async def test_a_webhook_that_is_away_costs_the_conversation_nothing(benches: Benches, monkeypatch: Any) -> None:
    monkeypatch.setattr("workers.webhook._FIRST_PAUSE_SECONDS", 0.001)
    recipe = RECIPE.replace("deadline_seconds: 3600", "webhook: 'http://127.0.0.1:1/hook'")
    async with benches.bench(recipe, [JOB]) as bench:
        await speaking(bench, asking("a"), says("done"))
        assert await bench.execute() == "paused"
        await answer(bench, a={"said": "yes"})
        assert await bench.execute() == "ok"
