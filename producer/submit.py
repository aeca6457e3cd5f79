"""`parley submit`: feed a recipe's conversations to a cluster."""

import asyncio
import signal
import time
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from jobs.ledger import Ledger
from jobs.ledger.progress import Snapshot
from producer.ending import make_and_end
from producer.feeder import Feeder
from producer.logs import log_to_stderr
from producer.outcome import counted_jobs
from producer.progress import ProgressDisplay
from producer.run_address import address_of
from producer.staged_input import OnBadLine
from producer.submission import Submission, SubmissionRequest
from producer.submission import submit as write_run
from producer.terminal import say
from results.async_store import AsyncStore


def submit(
    *,
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="The recipe (YAML or TOML).")],
    broker: Annotated[
        str, typer.Option(metavar="URL", envvar="PARLEY_BROKER", help="The cluster's Redis (redis://host:port/db).")
    ],
    results: Annotated[
        str, typer.Option(metavar="URL", help="A store that the workers reach too: s3://, gs://, az://, or a folder.")
    ],
    jobs: Annotated[
        str | None, typer.Option(metavar="FILE|-", help="Job lines (JSONL). Default: jobs.jsonl beside the recipe.")
    ] = None,
    run_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Default: made of the recipe and the jobs, so that it resumes.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the stored jobs of --run-id, such as those that came by stdin.")
    ] = False,
    on_bad_line: Annotated[OnBadLine, typer.Option(help="What a job line that cannot run means.")] = OnBadLine.ERROR,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Write the run into the store, feed its jobs to the cluster's workers, and wait until each has its record.

    The same command resumes a run whose feeder was stopped; what is fed goes on without it.
    """
    started = time.monotonic()
    log_to_stderr()
    refuse_unreachable_broker(broker)
    submission = write_run(
        SubmissionRequest(recipe, jobs, results, run_id, on_bad_line, is_local=False, is_resumed=resume)
    )
    feed_cluster(submission, broker, started=started, as_json=as_json)


def refuse_unreachable_broker(broker: str) -> None:
    """Notice it before the input is written."""
    asyncio.run(_ping(broker))


def feed_cluster(submission: Submission, broker: str, *, started: float, as_json: bool) -> NoReturn:
    """Feed what is left of a run, say how it ended, and leave the command."""
    make_and_end(submission, _feed(submission, broker), started=started, as_json=as_json)


async def _ping(broker: str) -> None:
    async with Ledger.open(broker) as ledger:
        await ledger.ping()


async def _feed(submission: Submission, broker: str) -> Snapshot | None:
    """Feed until every job is settled; None when the person, or Kubernetes, broke it off."""
    feeding = asyncio.create_task(_feed_all(submission, broker))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, feeding.cancel)
    await asyncio.wait({feeding})
    return None if feeding.cancelled() else feeding.result()


async def _feed_all(submission: Submission, broker: str) -> Snapshot:
    run_id = submission.manifest.run_id
    say(f"run {run_id}: {counted_jobs(submission.manifest.jobs)}")
    async with Ledger.open(broker) as ledger, AsyncStore(submission.store) as store:
        with ProgressDisplay(run_id, named=address_of(submission.store.url, run_id)) as display:
            return await Feeder(ledger, store, submission.manifest, submission.results_url).run(display.show)
