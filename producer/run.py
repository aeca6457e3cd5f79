"""`parley run`: make a recipe's conversations on this machine."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from jobs.ledger.progress import Snapshot
from producer.children import run_folder
from producer.embedded import (
    DEFAULT_CONCURRENCY,
    EmbeddedSettings,
    default_workers,
    run_embedded,
)
from producer.ending import make_and_end
from producer.logs import log_to_file
from producer.model_endpoints import refuse_unreachable_models
from producer.outcome import counted_jobs, print_summary
from producer.progress import ProgressDisplay
from producer.run_address import DEFAULT_RESULTS, address_of
from producer.staged_input import OnBadLine
from producer.submission import Submission, SubmissionRequest, stored_summary, submit
from producer.terminal import say


def run(
    *,
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="The recipe (YAML or TOML).")],
    jobs: Annotated[
        str | None, typer.Option(metavar="FILE|-", help="Job lines (JSONL). Default: jobs.jsonl beside the recipe.")
    ] = None,
    results: Annotated[
        str, typer.Option(metavar="URL", help="A folder, or file://, s3://, gs://, az://.")
    ] = DEFAULT_RESULTS,
    run_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Default: made of the recipe and the jobs, so that it resumes.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, max=64, help="Worker processes. Default: up to 2.")] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=100_000, help="Conversations in flight, in all workers together.")
    ] = DEFAULT_CONCURRENCY,
    broker: Annotated[
        str | None, typer.Option(metavar="URL", help="A Redis to use (redis://…) instead of a private one.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the stored jobs of --run-id, such as those that came by stdin.")
    ] = False,
    on_bad_line: Annotated[OnBadLine, typer.Option(help="What a job line that cannot run means.")] = OnBadLine.ERROR,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Make the conversations of RECIPE on this machine, with worker processes and a Redis of the run's own.

    The same command resumes the run: nothing that is stored is made twice. Ctrl-C lets the workers save what they
    hold; Ctrl-C again ends them at once.
    """
    started = time.monotonic()
    submission = submit(SubmissionRequest(recipe, jobs, results, run_id, on_bad_line, is_local=True, is_resumed=resume))
    make_here(submission, Capacity(workers, concurrency, broker), started=started, as_json=as_json)


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much of this machine a run may take; `workers` None leaves it to the number of its jobs."""

    workers: int | None
    concurrency: int
    broker: str | None = None


def make_here(submission: Submission, capacity: Capacity, *, started: float, as_json: bool) -> NoReturn:
    """Make what is left of a run on this machine, say how it ended, and leave the command."""
    summary = stored_summary(submission.store, submission.manifest, seconds=time.monotonic() - started)
    if not summary.pending:
        say(f"run {summary.run_id} is complete already")
        print_summary(summary, as_json=as_json)
        raise typer.Exit(summary.exit_code)
    refuse_unreachable_models(submission.checked)
    run_id = submission.manifest.run_id
    settings = EmbeddedSettings(
        workers=capacity.workers or default_workers(summary.pending),
        concurrency=capacity.concurrency,
        folder=run_folder(submission.results_url, run_id),
        broker=capacity.broker,
    )
    make_and_end(submission, _make(submission, settings), started=started, as_json=as_json)


async def _make(submission: Submission, settings: EmbeddedSettings) -> Snapshot | None:
    run_id = submission.manifest.run_id
    say(f"run {run_id}: {counted_jobs(submission.manifest.jobs)}; logs in {settings.folder / 'logs'}")
    log_to_file(settings.folder / "logs" / "feeder.log")
    with ProgressDisplay(run_id, named=address_of(submission.store.url, run_id)) as display:
        return await run_embedded(submission, settings, display.show)
