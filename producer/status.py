"""`parley status`: how far a run is."""

import asyncio
import time
from datetime import datetime
from typing import Annotated

import typer

from jobs.errors import BrokerUnreachable, RunUnknown
from jobs.ledger import Ledger
from jobs.ledger.progress import Snapshot
from producer.children import private_broker
from producer.outcome import Summary, print_summary, summary_of_snapshot, waiting_line
from producer.run_address import RESULTS_OPTION, RUN_ARGUMENT, FoundRun, find_run
from producer.submission import stored_summary
from producer.terminal import say
from results.keys import ShardName
from results.reading import shard_keys

_PATIENCE_SECONDS = 2.0


def status(
    *,
    run: Annotated[str, RUN_ARGUMENT],
    results: Annotated[str | None, RESULTS_OPTION] = None,
    broker: Annotated[
        str | None,
        typer.Option(metavar="URL", envvar="PARLEY_BROKER", help="Ask this Redis for the counts of this moment."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Say how far RUN is: from the ledger while it is being made and can be asked, else from what is stored.

    The exit code is 0 whenever the run could be looked at; the counts say how it stands.
    """
    found = find_run(run, results)
    snapshot = _ask_ledger(found, broker)
    summary = _stored(found) if snapshot is None else _live(found, snapshot)
    print_summary(summary, as_json=as_json)
    if snapshot is not None and not as_json:
        say(f"{snapshot.in_flight} in flight, {snapshot.queued} queued, {snapshot.later} waiting to be tried again")
        if snapshot.paused:
            say(waiting_line(run, snapshot.paused))
        if snapshot.sessions_left:
            say(f"{snapshot.sessions_left} jobs left sessions on their backends that are not torn down yet")


def _ask_ledger(found: FoundRun, broker: str | None) -> Snapshot | None:
    """The ledger's counts; None when no broker knows the run."""
    url = broker or private_broker(found.store.url, found.run_id)
    if url is None:
        return None
    try:
        return asyncio.run(_snapshot(url, found.run_id))
    except (BrokerUnreachable, RunUnknown) as error:
        if broker is not None:
            say(f"counted from what is stored: {error}")
        return None


async def _snapshot(url: str, run_id: str) -> Snapshot:
    async with Ledger.open(url, patience_seconds=_PATIENCE_SECONDS) as ledger:
        return await ledger.progress.snapshot(run_id)


def _live(found: FoundRun, snapshot: Snapshot) -> Summary:
    started = snapshot.started_at
    seconds = 0.0 if started is None else (snapshot.finished_at or time.time()) - started
    return summary_of_snapshot(snapshot, run_id=found.run_id, results=found.store.url, seconds=max(seconds, 0.0))


def _stored(found: FoundRun) -> Summary:
    """What is stored; its time is the one between the run's creation and its last shard."""
    names = (ShardName.parse(key) for key in shard_keys(found.store, found.run_id))
    last = max((name.sealed_ms / 1000 for name in names if name is not None), default=0.0)
    created = datetime.fromisoformat(found.manifest.created_at).timestamp()
    return stored_summary(found.store, found.manifest, seconds=max(last - created, 0.0))
