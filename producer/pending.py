"""`parley pending`: which conversations of a run wait for answers from outside, and for which."""

import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from jobs.errors import BrokerUnreachable, InputCorrupt
from jobs.ledger.externals import Awaited
from jobs.paused import answers_by_job, first_answers, newest_paused, read_paused
from producer.children import private_broker
from producer.errors import DependencyUnreachable
from producer.external import ExternalTools
from producer.external_calls import PendingJob, pending_job
from producer.run_address import RESULTS_OPTION, RUN_ARGUMENT, FoundRun, find_run
from producer.terminal import printable, say
from results.reading import visible_entries

JSONObject = dict[str, Any]
BROKER_OPTION = typer.Option(metavar="URL", envvar="PARLEY_BROKER", help="The Redis of the run's cluster.")


def pending(
    *,
    run: Annotated[str, RUN_ARGUMENT],
    results: Annotated[str | None, RESULTS_OPTION] = None,
    broker: Annotated[str | None, BROKER_OPTION] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, with the calls' arguments.")] = False,
) -> None:
    """List the calls of RUN that wait for answers from outside; `parley answer` gives them.

    Of a run that is not being made it says what is stored; answers are taken once it goes on.
    """
    run_id, jobs = _waiting(run, results, broker)
    if as_json:
        sys.stdout.write(json.dumps({"run_id": run_id, "pending": [job.to_dict() for job in jobs]}) + "\n")
        return
    for job in jobs:
        sys.stdout.write(printable(f"{job.index} {job.job_id}, since {job.paused_at}") + "\n")
        for call in job.calls:
            told = call.to_dict()
            until = f" until {told['ends_at']}" if told["ends_at"] else ""
            arguments = json.dumps(call.arguments, ensure_ascii=False)
            sys.stdout.write(printable(f"  {call.call_id} {call.name} {arguments}{until}") + "\n")
    say(_said(run, jobs))


def _said(run: str, jobs: Sequence[PendingJob]) -> str:
    calls = sum(len(job.calls) for job in jobs)
    if not jobs:
        return "nothing waits for answers from outside"
    return f"{len(jobs)} jobs wait for {calls} answers; give them with: parley answer {run} JOB --results FILE"


def _waiting(run: str, results: str | None, broker: str | None) -> tuple[str, list[PendingJob]]:
    if broker is not None:
        with ExternalTools(run, results=results, broker=broker) as tools:
            return tools.run_id, tools.pending()
    found = find_run(run, results)
    cause = "the run is not being made on this machine, and there is no --broker"
    if private_broker(found.store.url, found.run_id) is not None:
        try:
            with ExternalTools(run, results=results) as tools:
                return tools.run_id, tools.pending()
        except (BrokerUnreachable, DependencyUnreachable) as error:  # it ended in this moment
            cause = str(error)
    say(f"read from what is stored: {cause}")
    return found.run_id, stored_pending(found)


def stored_pending(found: FoundRun) -> list[PendingJob]:
    """What waits as far as object storage tells: whether a call's time is over only the ledger knows."""
    store, run_id = found.store, found.run_id
    states = newest_paused(store, run_id)
    if not states:
        return []
    done = {entry.index for entry in visible_entries(store, run_id)}
    answers = answers_by_job(store, run_id)
    jobs = []
    for index, key in sorted(states.items()):
        if index in done:
            continue
        try:
            paused = read_paused(store, key)
            answered = dict(first_answers(store, answers.get(index, ())))
        except InputCorrupt as failure:
            say(f"left out: {failure}")
            continue
        calls = {call.call_id: answered.get(call.call_id) for call in paused.calls}
        if job := pending_job(run_id, paused, Awaited(key, calls)):
            jobs.append(job)
    return jobs
