"""Paused jobs put back into a ledger that was lost: what object storage knows of them, and of their answers."""

from collections.abc import Iterable
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


async def restore_paused(ledger: Externals, store: AsyncStore, manifest: RunManifest) -> int:
    """Enter every job that paused and is not done; how many. One that went on since pauses again at its next attempt.

    Its calls keep what is left of their time, by the clocks of who paused it and of this machine.
    """
    states = await store.in_thread(newest_paused, store.store, manifest.run_id)
    if not states:
        return 0
    answers = await store.in_thread(answers_by_job, store.store, manifest.run_id)
    restored = 0
    for index, key in states.items():
        try:
            job = await store.in_thread(read_paused, store.store, key)
            found = await store.in_thread(_answers_in, store.store, answers.get(index, ()))
        except InputCorrupt as failure:
            log.warning("a paused job cannot be read: it begins again", run=manifest.run_id, cause=str(failure))
            continue
        since = (datetime.now(UTC) - datetime.fromisoformat(job.paused_at)).total_seconds()
        calls = [
            (
                call.call_id,
                found.get(call.call_id),
                None if call.seconds is None else max(_LEAST_SECONDS, call.seconds - since),
            )
            for call in job.calls
        ]
        restored += await ledger.restore(manifest.run_id, index, job.route, key, calls)
    return restored


def _answers_in(store: Store, keys: Iterable[str]) -> dict[str, str]:
    """By call id the key of its first answer."""
    return dict(first_answers(store, keys))
