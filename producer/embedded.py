"""A run on this machine alone: a private Redis, worker processes and the feeder, from start to drained end."""

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.ledger import Ledger
from jobs.ledger.progress import Snapshot
from jobs.routing import CONVERSATIONS_QUEUE, NAMESPACE_QUEUE_PREFIX
from producer.children import Children
from producer.feeder import Feeder
from producer.private_redis import PrivateRedis
from producer.run_lock import RunLock
from producer.submission import Submission
from producer.terminal import say
from producer.worker_processes import WorkerProcesses, WorkerSettings
from results.async_store import AsyncStore

DRAIN_SECONDS = 25.0
_IDLE_DRAIN_SECONDS = 10.0
_SMALL_RUN_JOBS = 200
DEFAULT_CONCURRENCY = 200


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """How much of this machine a run may take."""

    workers: int
    concurrency: int
    folder: Path
    broker: str | None = None
    log_level: str = "info"

    @property
    def concurrency_per_worker(self) -> int:
        """Conversations in flight in one worker process."""
        return max(1, -(-self.concurrency // self.workers))


def default_workers(jobs: int) -> int:
    """Two processes at most, and one where a second would only cost its start."""
    return 1 if jobs <= _SMALL_RUN_JOBS else min(2, os.cpu_count() or 1)


async def run_embedded(
    submission: Submission, settings: EmbeddedSettings, on_progress: Callable[[Snapshot], None]
) -> Snapshot | None:
    """Make every job of the run that has no record yet; its last counts, or None when the person broke it off."""
    run_id = submission.manifest.run_id
    settings.folder.mkdir(parents=True, exist_ok=True)
    with RunLock(settings.folder, run_id):
        children = Children(settings.folder)
        children.kill_leftovers()
        async with (
            _broker(settings, children) as (url, keep_broker),
            Ledger.open(url) as ledger,
            AsyncStore(submission.store) as store,
        ):
            await ledger.ping()
            if settings.broker is None:
                # Nobody else can work on this run: what is claimed was claimed by the dead.
                await ledger.claims.expire_all(run_id)
            name = f"embedded-{secrets.token_hex(4)}"

            async def end_claims_of(pid: int) -> None:
                """What a dead worker held goes to the others now, not when its leases run out."""
                await ledger.claims.expire_all(run_id, nonce_prefix=f"{name}-{pid}-")

            workers = WorkerProcesses(
                _worker_settings(submission, settings, url, name),
                settings.workers,
                on_start=lambda number, pid: children.note(f"worker {number}", pid),
                on_death=end_claims_of,
            )
            feeder = Feeder(ledger, store, submission.manifest, submission.results_url)
            if settings.broker is None:
                feeder.token = f"embedded-{run_id}"  # A feeder that was killed is not waited for: it was this one.
                feeder.quiet_seconds = 0.0  # Who held a permit is dead.
            return await _conduct(feeder, workers, keep_broker, on_progress)


@contextlib.asynccontextmanager
async def _broker(
    settings: EmbeddedSettings, children: Children
) -> AsyncIterator[tuple[str, "asyncio.Task[None] | None"]]:
    """The broker's URL and the task that keeps a private one alive."""
    if settings.broker is not None:
        yield settings.broker, None
        return

    def note(redis: PrivateRedis) -> None:
        children.broker_url = redis.url
        children.note("redis", redis.pid)

    async with PrivateRedis(settings.folder / "redis", on_start=note) as redis:
        keeper = asyncio.create_task(redis.keep_running())
        try:
            yield redis.url, keeper
        finally:
            await _end(keeper)
    children.forget()


async def _conduct(
    feeder: Feeder,
    workers: WorkerProcesses,
    keep_broker: "asyncio.Task[None] | None",
    on_progress: Callable[[Snapshot], None],
) -> Snapshot | None:
    feeding = asyncio.create_task(feeder.run(on_progress))
    keep_workers = asyncio.create_task(workers.keep_running())
    keepers = [keep_workers, *([keep_broker] if keep_broker else [])]
    with _interruptions(workers) as interrupted:
        stop = asyncio.create_task(interrupted.wait())
        try:
            await asyncio.wait({feeding, stop, *keepers}, return_when=asyncio.FIRST_COMPLETED)
            if interrupted.is_set():
                say("interrupted: letting the workers save what they hold (Ctrl-C again ends them at once)")
            for keeper in keepers:
                if keeper.done():
                    keeper.result()  # Raises: workers and broker end by themselves only when they cannot go on.
            await _end(feeding)
            await workers.drain(DRAIN_SECONDS if interrupted.is_set() else _IDLE_DRAIN_SECONDS)
            return None if feeding.cancelled() else feeding.result()
        finally:
            workers.kill()
            for task in (stop, feeding, keep_workers):
                await _end(task)


@contextlib.contextmanager
def _interruptions(workers: WorkerProcesses) -> Iterator[asyncio.Event]:
    """Turns the first Ctrl-C (or SIGTERM, SIGHUP) into an event and the second into the workers' end."""
    loop, interrupted = asyncio.get_running_loop(), asyncio.Event()

    def on_signal() -> None:
        if interrupted.is_set():
            workers.kill()
        interrupted.set()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # Under nohup the end of the terminal means nothing.
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, on_signal)
    try:
        yield interrupted
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def _end(task: "asyncio.Task[object]") -> None:
    """Cancel a task and wait until it is over; its own failure, if any, stays in the task."""
    task.cancel()
    await asyncio.wait({task})


def _worker_settings(submission: Submission, settings: EmbeddedSettings, broker_url: str, name: str) -> WorkerSettings:
    return WorkerSettings(
        run_id=submission.manifest.run_id,
        queues=_queues(submission.manifest.routes),
        concurrency=settings.concurrency_per_worker,
        environment=_environment(settings, broker_url, name),
        log_folder=settings.folder / "logs",
        module_folders=submission.checked.module_folders,
        log_level=settings.log_level,
    )


def _queues(routes: Sequence[Sequence[str]]) -> list[str]:
    namespaces = sorted({namespace for route in routes for namespace in route})
    return [CONVERSATIONS_QUEUE, *(NAMESPACE_QUEUE_PREFIX + namespace for namespace in namespaces)]


def _environment(settings: EmbeddedSettings, broker_url: str, name: str) -> dict[str, str]:
    environment = {"PARLEY_BROKER": broker_url, "PARLEY_WORKER_NAME": name, "PYTHONUNBUFFERED": "1"}
    if settings.broker is None:  # Nobody but this run can reach a private Redis: nobody looks at events.
        environment["PARLEY_EVENTS"] = os.environ.get("PARLEY_EVENTS", "false")
    return environment
