"""`parley fork`: go on with one conversation from one of its turns, several times or with another model."""

import time
from pathlib import Path
from typing import Annotated

import typer

from producer.embedded import DEFAULT_CONCURRENCY
from producer.forked_run import ForkRequest, submit_fork
from producer.logs import log_to_stderr
from producer.run import Capacity, make_here
from producer.run_address import JOB_ARGUMENT, RESULTS_OPTION, RUN_ARGUMENT, find_job, find_run
from producer.submit import feed_cluster, refuse_unreachable_broker


def fork(
    *,
    run: Annotated[str, RUN_ARGUMENT],
    job: Annotated[str, JOB_ARGUMENT],
    turn: Annotated[int, typer.Option(min=0, metavar="K", help="Keep the first K replies of the model; 0 keeps none.")],
    model: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Another model: its name, or a YAML or TOML model block.")
    ] = None,
    n: Annotated[int, typer.Option("-n", "--n", min=1, max=100_000, help="How many conversations go on from it.")] = 4,
    results: Annotated[str | None, RESULTS_OPTION] = None,
    run_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Default: made of what is forked, so that it resumes.")
    ] = None,
    folder: Annotated[
        Path, typer.Option(metavar="DIR", help="Where Python modules of the recipe's tools lie.", file_okay=False)
    ] = Path(),
    workers: Annotated[int | None, typer.Option(min=1, max=64, help="Worker processes. Default: up to 2.")] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=100_000, help="Conversations in flight, in all workers together.")
    ] = DEFAULT_CONCURRENCY,
    broker: Annotated[
        str | None, typer.Option(metavar="URL", help="Feed the cluster of this Redis, instead of working here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Go on with conversation JOB of RUN as it was after K replies of its model; what came later is made anew.

    The conversations are a new run in the same store, with the recipe that RUN has stored; their metadata name the
    parent. The same command resumes that run.
    """
    started = time.monotonic()
    found = find_run(run, results)
    record = find_job(found, job)
    if broker is not None:
        log_to_stderr()
        refuse_unreachable_broker(broker)
    submission = submit_fork(found, record, ForkRequest(turn, n, model, run_id, folder, is_local=broker is None))
    if broker is not None:
        feed_cluster(submission, broker, started=started, as_json=as_json)
    make_here(submission, Capacity(workers, concurrency), started=started, as_json=as_json)
