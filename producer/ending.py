"""How `parley run` and `parley submit` end: the summary on stdout, then the exit code or the command that resumes."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, NoReturn

import typer

from jobs.ledger.progress import Snapshot
from producer.errors import Interrupted
from producer.outcome import print_summary, summary_of_snapshot
from producer.resuming import interruption_message
from producer.submission import Submission, stored_summary


def make_and_end(
    submission: Submission, work: Coroutine[Any, Any, Snapshot | None], *, started: float, as_json: bool
) -> NoReturn:
    """Do the work, which gives the last counts or None when it was broken off, and leave the command."""
    try:
        last = asyncio.run(work)
    except KeyboardInterrupt:  # Before the work was ready to end in order.
        last = None
    manifest, seconds = submission.manifest, time.monotonic() - started
    if last is None:
        # What the workers saved while they drained is in the store.
        print_summary(stored_summary(submission.store, manifest, seconds=seconds), as_json=as_json)
        raise Interrupted(interruption_message(manifest.run_id))
    summary = summary_of_snapshot(last, run_id=manifest.run_id, results=submission.results_url, seconds=seconds)
    print_summary(summary, as_json=as_json)
    raise typer.Exit(summary.exit_code)
