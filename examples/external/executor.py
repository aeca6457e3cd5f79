"""A small executor: waits for the external calls of a run and answers them, in a process of its own.

    .venv/bin/python -m examples.external.executor runs/refunds

It may be started before the run or after it, and as many of them as you like: each call takes the first answer.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

from jobs.errors import BrokerUnreachable
from producer.errors import DependencyUnreachable, NotPaused, UsageInvalid
from producer.external import ExternalTools, PendingJob

PATIENCE_SECONDS = 60.0
MOST_EUROS = 200


def approve_refund(euros: float) -> dict[str, Any]:
    """Decide as a manager would."""
    return {"approved": euros <= MOST_EUROS, "by": "the manager"}


def inspect_parcel(shelf: str) -> dict[str, Any]:
    """Look into the parcel."""
    return {"condition": ("as new", "used", "broken")[len(shelf) % 3]}


def call_customer(question: str) -> dict[str, Any]:
    """Ring the customer."""
    return {"said": f"About {question}: yes, please."}


PEOPLE: dict[str, Callable[..., dict[str, Any]]] = {
    "people::approve_refund": approve_refund,
    "people::inspect_parcel": inspect_parcel,
    "people::call_customer": call_customer,
}


def answers_for(job: PendingJob) -> list[dict[str, Any]]:
    """Do the work of each call of a job; somebody who will not do it says why, and the model is told."""
    if job.job_id == "cancelled":
        return [{"call_id": call.call_id, "error": "cancelled: the customer has gone home"} for call in job.calls]
    return [{"call_id": call.call_id, "result": PEOPLE[call.name](**call.arguments)} for call in job.calls]


def answer(tools: ExternalTools, job: PendingJob) -> None:
    """Give a job its answers, and say what became of them."""
    try:
        answers = tools.answer(job.index, answers_for(job))
    except (NotPaused, BrokerUnreachable, DependencyUnreachable) as over:  # it is over, or the whole run is
        _say(f"{job.job_id}: too late: {over}")
        return
    for call in job.calls:
        _say(f"{job.job_id}: {call.name} {answers.calls[call.call_id]}")


def answer_all(tools: ExternalTools) -> None:
    """Answer what waits until the run is over; the job "late" is answered when its time is just over."""
    held: list[tuple[float, PendingJob]] = []
    while not tools.is_finished:
        first = min((due for due, _ in held), default=None)
        for job in tools.wait(None if first is None else max(0.0, first - time.time())):
            if job.job_id == "late":
                held.append((max(call.ends_at or 0.0 for call in job.calls) + 0.1, job))
            else:
                answer(tools, job)
        for due, job in [each for each in held if each[0] <= time.time()]:
            held.remove((due, job))
            answer(tools, job)


def tools_of(run: str) -> ExternalTools:
    """Find the run; one that is just being started is waited for."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            tools = ExternalTools(run)
            tools.pending()
        except (UsageInvalid, DependencyUnreachable, BrokerUnreachable):
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.2)
        else:
            return tools


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with tools_of(sys.argv[1]) as found:
        answer_all(found)
