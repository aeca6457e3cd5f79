"""Paused jobs put back into a ledger that was lost: what object storage knows of them, and of their answers."""

import asyncio
from collections.abc import Container, Iterable
from datetime import UTC, datetime

import structlog

from jobs.errors import InputCorrupt
from jobs.ledger.externals import Externals
from jobs.paused import answers_by_job, first_answers, newest_paused, read_paused
from results.async_store import AsyncStore
from results.manifest import RunManifest
from results.store import Store

log = structlog.get_logger(__name__)

_LEAST_SECONDS = 1.0
_AT_ONCE = 64


async def restore_paused(
    ledger: Externals, store: AsyncStore, manifest: RunManifest, *, done: Container[int] = ()
) -> int:
    """Enter every job that paused and is not done; how many. One that went on since pauses again at its next attempt.

    Its calls keep what is left of their time, by the clocks of who paused it and of this machine.
    """
    states = await store.in_thread(newest_paused, store.store, manifest.run_id)
    waiting = {index: key for index, key in states.items() if index not in done}
    if not waiting:
        return 0
    answers = await store.in_thread(answers_by_job, store.store, manifest.run_id)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def restore(index: int, key: str) -> bool:
        async with gate:
            return await _restore(ledger, store, manifest, key, answers.get(index, ()))

    return sum(await asyncio.gather(*(restore(index, key) for index, key in waiting.items())))


async def _restore(
    ledger: Externals, store: AsyncStore, manifest: RunManifest, key: str, answers: Iterable[str]
) -> bool:
    try:
        job = await store.in_thread(read_paused, store.store, key)
        found = await store.in_thread(_answers_in, store.store, answers)
    except InputCorrupt as failure:
        log.warning("a paused job cannot be read: it begins again", run=manifest.run_id, cause=str(failure))
        return False
    since = (datetime.now(UTC) - datetime.fromisoformat(job.paused_at)).total_seconds()
    calls = [
        (
            call.call_id,
            found.get(call.call_id),
            None if call.seconds is None else max(_LEAST_SECONDS, call.seconds - since),
        )
        for call in job.calls
    ]
    return await ledger.restore(manifest.run_id, job.index, job.route, key, calls)


def _answers_in(store: Store, keys: Iterable[str]) -> dict[str, str]:
    """By call id the key of its first answer."""
    return dict(first_answers(store, keys))
