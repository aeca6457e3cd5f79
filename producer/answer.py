"""`parley answer`: give a waiting conversation the results of its external calls."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from producer.errors import InputInvalid
from producer.external import ExternalTools
from producer.external_answers import read_answers_text
from producer.external_calls import Answers
from producer.pending import BROKER_OPTION
from producer.run_address import RUN_ARGUMENT
from producer.terminal import printable


def answer(
    *,
    run: Annotated[str, RUN_ARGUMENT],
    job: Annotated[str, typer.Argument(metavar="JOB", help="Which conversation: its index, task id or id.")],
    results: Annotated[
        str,
        typer.Option(
            metavar="FILE|-", help='JSON: {call id: result}, or a list (or lines) of {"call_id", "result" | "error"}.'
        ),
    ],
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="The results URL of a run that is named by its id.")
    ] = None,
    broker: Annotated[str | None, BROKER_OPTION] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each call's outcome as one JSON object.")] = False,
) -> None:
    """Give JOB of RUN results of its external calls: all of them or some, in any order; each takes the first one.

    They are checked before any of them is taken. Exit code 3 when one is wrong, late, or answered already.
    """
    given = read_answers_text(_text_of(results), "stdin" if results == "-" else results)
    entries = [{"call_id": call_id, **entry} for call_id, entry in given.items()]
    with ExternalTools(run, results=store, broker=broker) as tools:
        answers = tools.answer(job, entries)
        run_id = tools.run_id
    if as_json:
        told = {"run_id": run_id, "index": answers.index, "job": answers.job, "calls": dict(answers.calls)}
        sys.stdout.write(json.dumps(told) + "\n")
    else:
        sys.stdout.write(printable(_said(run_id, answers)) + "\n")
    sys.stdout.flush()
    if answers.refused:
        raise InputInvalid("; ".join(f"call {call_id}: {why}" for call_id, why in answers.refused.items()))


def _said(run_id: str, answers: Answers) -> str:
    count = len(answers.accepted)
    goes_on = "it goes on" if answers.job == "resumed" else "it waits for more"
    taken = f"{count} answer{'' if count == 1 else 's'} taken"
    return f"job {answers.index} of {run_id}: {taken}" + (f", {goes_on}" if answers.job != "running" else "")


def _text_of(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InputInvalid(f"--results {file}: cannot be read: {cause}") from None
