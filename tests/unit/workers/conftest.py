"""A worker in this process: real Redis, a real folder as store, the offline model or a scripted one."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conversations.recipe_files import load_recipe, recipe_to_json
from engines.loading import load_registry, pinned
from jobs.job import JobReference
from jobs.routing import permit_limits, route_of
from jobs.run import InputWriter, create_run
from producer.checked_recipe import check_below
from producer.feeder import Feeder
from producer.sub_recipes import SubRecipes
from results.async_store import AsyncStore
from results.manifest import RunManifest
from results.reading import visible_records
from results.store import open_store
from tests.support.redis_server import RedisServer, redis_server
from workers.draining import Draining
from workers.execute import execute
from workers.settings import WorkerSettings
from workers.worker import Worker

RUN = "run"


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@dataclass
class Bench:
    """One run and one worker on it; jobs are executed by hand."""

    worker: Worker
    manifest: RunManifest
    results: str

    async def execute(self, index: int = 0) -> str:
        return await execute(JobReference(RUN, index, self.manifest.routes[-1]), self.worker)

    def records(self) -> list[dict[str, Any]]:
        return list(visible_records(open_store(self.results), RUN))


class Benches:
    """Makes benches; each has a Redis that was wiped."""

    def __init__(self, server: RedisServer, folder: Path) -> None:
        self.server, self.folder = server, folder

    @asynccontextmanager
    async def bench(
        self,
        recipe: str,
        jobs: list[Mapping[str, Any]],
        *,
        environment: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> AsyncIterator[Bench]:
        with self.server.client() as client:
            client.flushall()
        manifest, results = self.write_run(recipe, jobs), str(self.folder / "results")
        chosen = WorkerSettings(broker=self.server.url, linger_seconds=0.01, retry_delay_seconds=0.0, **settings)
        async with (
            Worker.open(chosen, environment or {}, Draining()) as worker,
            AsyncStore(open_store(results)) as store,
        ):
            feeder = Feeder(worker.ledger, store, manifest, results)
            await feeder.register()
            assert await worker.ledger.feeding.take_lease(RUN, feeder.token)
            await feeder.top_up(await worker.ledger.progress.snapshot(RUN))
            yield Bench(worker, manifest, results)

    @asynccontextmanager
    async def another(self, bench: Bench, *, environment: Mapping[str, str]) -> AsyncIterator[Bench]:
        """Open another worker on the same run, with an environment of its own."""
        async with Worker.open(bench.worker.settings, environment, Draining()) as worker:
            yield Bench(worker, bench.manifest, bench.results)

    def write_run(self, recipe: str, jobs: list[Mapping[str, Any]]) -> RunManifest:
        path = self.folder / "recipe.yaml"
        path.write_text(recipe)
        loaded = load_recipe(path)
        sub_recipes = SubRecipes(partial(check_below, is_local=False), (path.resolve(),))
        registry = load_registry(loaded.recipe.tools, folder=self.folder, environment={}, pin_recipe=sub_recipes.pin)
        store = open_store(str(self.folder / "results"))
        writer = InputWriter(store, RUN)
        route = route_of(registry.all_tools(), registry.toolsets)
        for job in jobs:
            writer.add(dict(job), route)
        return create_run(
            store,
            run_id=RUN,
            name="test",
            recipe_json=recipe_to_json(loaded, pinned(loaded.recipe.tools, registry)),
            written=writer.finish(),
            limits=permit_limits(registry.toolsets),
            max_attempts=loaded.recipe.limits.max_attempts,
        )


@pytest.fixture
def benches(broker: RedisServer, tmp_path: Path) -> Benches:
    return Benches(broker, tmp_path)
