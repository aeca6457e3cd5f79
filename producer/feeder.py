"""The feeder: keeps a bounded window of a run's jobs in the queues until every job is settled."""

import asyncio
import itertools
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import orjson
import structlog

from jobs.ledger import Ledger
from jobs.ledger.feeding import FED_JOB
from jobs.ledger.progress import Snapshot
from jobs.ledger.runs import RunFacts
from jobs.run import ROUTE_FIELD, read_part
from producer.paused_jobs import restore_paused
from results.async_store import AsyncStore
from results.manifest import RunManifest
from results.reading import visible_entries

log = structlog.get_logger(__name__)

WINDOW = 20_000
BATCH = 1000
Watcher = Callable[[Snapshot], None]


@dataclass(slots=True)
class Feeder:
    """Feeds one run. A second feeder of the same run stands by and takes over when the first one dies."""

    ledger: Ledger
    store: AsyncStore
    manifest: RunManifest
    results: str
    window: int = WINDOW
    every_seconds: float = 1.0
    sweep_every_seconds: float = 5.0
    quiet_seconds: float = 60.0  # a claim's lease
    token: str = field(default_factory=lambda: f"feeder-{secrets.token_hex(8)}")
    is_standing_by: bool = False
    _was_registered: bool = False
    _cursor: "Iterator[list[FED_JOB]] | None" = None
    _is_all_fed: bool = False

    @property
    def run_id(self) -> str:
        """Return the id of the run."""
        return self.manifest.run_id

    async def run(self, watcher: Watcher | None = None) -> Snapshot:
        """Register, feed and sweep until every job is settled; the watcher sees each snapshot."""
        try:
            swept_at = float("-inf")
            while True:
                await self.register()
                snapshot = await self.ledger.progress.snapshot(self.run_id)
                if watcher is not None:
                    watcher(snapshot)
                if snapshot.is_finished:
                    return snapshot
                if await self._may_feed():
                    await self.top_up(snapshot)
                    now = asyncio.get_running_loop().time()
                    if now - swept_at >= self.sweep_every_seconds:
                        swept_at = now
                        await self.sweep()
                await asyncio.sleep(self.every_seconds)
        finally:
            await self.ledger.feeding.drop_lease(self.run_id, self.token)

    async def register(self) -> None:
        """Enter the run into the ledger; a ledger that lost it gets its bits back from object storage."""
        manifest = self.manifest
        facts = RunFacts(
            run_id=manifest.run_id,
            results=self.results,
            jobs=manifest.jobs,
            digest=f"{manifest.recipe_digest}:{manifest.input_digest}",
            routes=manifest.routes,
            limits=manifest.limits,
            max_attempts=manifest.max_attempts,
        )
        if not await self.ledger.runs.register(facts):
            self._was_registered = True
            return
        await self.ledger.permits.set_limits(manifest.limits)
        entries = await self.store.in_thread(lambda: list(visible_entries(self.store.store, self.run_id)))
        if entries:
            restored = await self.ledger.runs.restore(self.run_id, entries)
            log.info("progress restored from the results", run=self.run_id, jobs=restored)
        done = {entry.index for entry in entries}
        if waiting := await restore_paused(self.ledger.externals, self.store, manifest, done=done):
            log.info("paused jobs restored from the results", run=self.run_id, jobs=waiting)
        if manifest.limits and self.quiet_seconds and (entries or self._was_registered):
            # Before anything is fed: who held a permit when the ledger was lost has so long to notice (F7).
            await self.ledger.permits.keep_quiet(self.quiet_seconds)
            log.warning("the ledger was lost: no permit is given out for a while", seconds=self.quiet_seconds)
        self._was_registered = True
        self._cursor, self._is_all_fed = None, False

    async def _may_feed(self) -> bool:
        is_ours = await self.ledger.feeding.take_lease(self.run_id, self.token)
        if is_ours == self.is_standing_by:
            self.is_standing_by = not is_ours
            log.info("feeding" if is_ours else "another feeder works on this run: standing by", run=self.run_id)
        return is_ours

    async def top_up(self, snapshot: Snapshot) -> None:
        """Feed as many jobs as the window has room for."""
        room = self.window - snapshot.window
        while room > 0 and not self._is_all_fed:
            if self._cursor is None:
                self._cursor = self._unsettled(await self.ledger.feeding.done_bits(self.run_id))
            batch = await self.store.in_thread(next, self._cursor, None)
            if batch is None:
                self._is_all_fed = True
                return
            if not await self.ledger.feeding.feed(self.run_id, self.token, batch):
                self._cursor = None  # another feeder took over: begin anew if it ever is our turn again
                return
            room -= len(batch)

    async def sweep(self) -> None:
        """Look for what died or was lost."""
        swept = await self.ledger.sweeping.sweep(self.run_id, self.token)
        if swept.expired or swept.lost:
            log.info("sent again", run=self.run_id, expired_claims=swept.expired, lost_messages=swept.lost)

    def _unsettled(self, done: bytes) -> Iterator[list[FED_JOB]]:
        """Yield batches of the jobs whose bit is not set, in order. Reads parts, so it runs in a thread."""
        jobs = ((index, route) for index, route in self._all_jobs() if not _bit(done, index))
        while batch := list(itertools.islice(jobs, min(BATCH, self.window))):
            yield batch

    def _all_jobs(self) -> Iterator[FED_JOB]:
        if self.manifest.uniform_route is not None:
            route = self.manifest.uniform_route
            yield from ((index, route) for index in range(self.manifest.jobs))
            return
        for part in self.manifest.parts:
            for offset, line in enumerate(read_part(self.store.store, part)):
                yield part.first_index + offset, orjson.loads(line)[ROUTE_FIELD]


def _bit(bits: bytes, index: int) -> bool:
    position = index >> 3
    return position < len(bits) and bool(bits[position] >> (7 - (index & 7)) & 1)
