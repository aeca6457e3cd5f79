"""What a worker has opened for one run: its files, its record sink and its equipment, shared by all jobs of the run."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Self

import orjson

from jobs.errors import InputCorrupt
from jobs.job import JobLine
from jobs.ledger.shared_cache import LedgerCache
from jobs.run import ROUTE_FIELD, part_of, read_part, read_recipe
from results.async_store import AsyncStore
from results.manifest import RunManifest, read_manifest
from results.shards import ShardWriter
from results.store import open_store
from workers.equipment import Equipment
from workers.settings import WorkerSettings

PARTS_IN_MEMORY = 4
Part = list[bytes]


@dataclass(slots=True)
class OpenRun:
    """A run as this process works on it. Opened once; closed when the process ends."""

    manifest: RunManifest
    store: AsyncStore
    sink: ShardWriter
    environment: Mapping[str, str]
    cache: LedgerCache
    _stack: AsyncExitStack
    _parts: "OrderedDict[int, asyncio.Task[Part]]" = field(default_factory=OrderedDict)
    _equipment: "asyncio.Task[Equipment] | None" = None
    _background: "set[asyncio.Task[None]]" = field(default_factory=set)

    @classmethod
    async def open(
        cls,
        run_id: str,
        results: str,
        *,
        settings: WorkerSettings,
        writer: str,
        others: Callable[[], int],
        environment: Mapping[str, str],
        cache: LedgerCache,
    ) -> Self:
        """Read the manifest and open the sink; the equipment follows at the first job."""
        async with AsyncExitStack() as stack:
            store = await stack.enter_async_context(AsyncStore(open_store(results)))
            manifest = await store.in_thread(read_manifest, store.store, run_id)
            if manifest is None:
                raise InputCorrupt(f"{results} holds no manifest of run {run_id}; it was removed or never written")
            sink = ShardWriter(
                store,
                run_id,
                writer=writer,
                linger_seconds=settings.linger_seconds,
                max_bytes=settings.shard_bytes,
                high_water_bytes=settings.high_water_bytes,
                others=others,
            )
            stack.push_async_callback(sink.close)
            return cls(manifest, store, sink, environment, cache, stack.pop_all())

    async def equipment(self) -> Equipment:
        """Return recipe, engines and model, opened by the first job that asks; a failure is tried again by the next."""
        task = self._equipment
        if task is None or _has_failed(task):
            task = self._equipment = asyncio.create_task(self._equip())
        return await asyncio.shield(task)

    async def _equip(self) -> Equipment:
        recipe_json = await self.store.in_thread(read_recipe, self.store.store, self.manifest)
        return await Equipment.open(recipe_json, environment=self.environment, cache=self.cache, stack=self._stack)

    async def job_line(self, index: int) -> JobLine:
        """Return the line of one job; the last few parts stay in memory, since jobs in the window are neighbours."""
        number = part_of(self.manifest.parts, index)
        lines = await asyncio.shield(self._part(number))
        line: dict[str, Any] = orjson.loads(lines[index - self.manifest.parts[number].first_index])
        line.pop(ROUTE_FIELD)
        return JobLine.model_validate(line)

    def _part(self, number: int) -> "asyncio.Task[Part]":
        task = self._parts.get(number)
        if task is None or _has_failed(task):
            part = self.manifest.parts[number]
            task = self._parts[number] = asyncio.create_task(self.store.in_thread(read_part, self.store.store, part))
        self._parts.move_to_end(number)
        while len(self._parts) > PARTS_IN_MEMORY:
            self._parts.popitem(last=False)
        return task

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for; what is not done when the run is closed is given up."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def close(self) -> None:
        """Flush the records, then close engines, model and store."""
        for task in tuple(self._background):
            task.cancel()
        await self._stack.aclose()


def _has_failed(task: "asyncio.Task[Any]") -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
