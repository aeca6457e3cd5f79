"""`parley replay`: recorded conversations through the loop again, without a model, a tool or a network."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from producer.exit_codes import ExitCode
from producer.replay_differences import Difference, differences
from producer.replaying import Replaying
from producer.run_address import RESULTS_OPTION, RUN_ARGUMENT, FoundRun, find_job, find_run
from producer.stored_lines import StoredLines
from producer.terminal import printable
from results.reading import visible_records

JSONObject = dict[str, Any]
_SHOWN_PLACES = 20
_SHOWN_CHARACTERS = 300


def replay(
    *,
    run: Annotated[str, RUN_ARGUMENT],
    job: Annotated[
        str | None, typer.Argument(metavar="[INDEX|JOB_ID]", help="Which conversation. Default: all of them.")
    ] = None,
    results: Annotated[str | None, RESULTS_OPTION] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as one JSON object.")] = False,
) -> None:
    """Run conversation JOB of RUN through the loop of this version, on its recorded answers and results, and compare.

    Nothing is asked over the network. The exit code is 0 when every conversation came out the same, else 4.
    """
    found = find_run(run, results)
    records = visible_records(found.store, found.run_id) if job is None else iter([find_job(found, job)])
    outcome = asyncio.run(_replay_all(found, records, is_told=not as_json))
    if as_json:
        typer.echo(json.dumps(outcome.to_json(), ensure_ascii=False))
    else:
        typer.echo(outcome.to_text())
    raise typer.Exit(ExitCode.JOBS_NOT_OK if outcome.differing else ExitCode.ALL_OK)


@dataclass(slots=True)
class Outcome:
    """What a replay came to; `empty` records hold nothing to replay."""

    run_id: str
    same: int = 0
    empty: int = 0
    differing: list[JSONObject] = field(default_factory=list)

    def to_json(self) -> JSONObject:
        """For `--json`."""
        replayed = self.same + len(self.differing)
        return {
            "run_id": self.run_id,
            "replayed": replayed,
            "same": self.same,
            "empty": self.empty,
            "differing": self.differing,
        }

    def to_text(self) -> str:
        """One line for people."""
        empty = f", {self.empty} empty" if self.empty else ""
        return printable(f"run {self.run_id}: {self.same} the same, {len(self.differing)} differ{empty}")


async def _replay_all(found: FoundRun, records: Iterator[JSONObject], *, is_told: bool) -> Outcome:
    replaying, lines, outcome = Replaying.of(found), StoredLines(found), Outcome(found.run_id)
    for record in records:
        if record["seed"] is None or not record["messages"]:
            outcome.empty += 1
            continue
        line = lines.of(record["index"])
        places = differences(record, await replaying.replay(record, line))
        if not places:
            outcome.same += 1
            continue
        outcome.differing.append(
            {
                "job_id": record["job_id"],
                "index": record["index"],
                "differences": [place.to_json() for place in places],
            }
        )
        if is_told:
            typer.echo(_told(record, places))
    return outcome


def _told(record: JSONObject, places: list[Difference]) -> str:
    count = f"{len(places)} place{'s' if len(places) > 1 else ''}"
    lines = [f"{record['run_id']} #{record['index']} {record['job_id']}: differs in {count}"]
    for place in places[:_SHOWN_PLACES]:
        lines += [f"  {place.at}", f"    recorded: {_shown(place.recorded)}", f"    replayed: {_shown(place.replayed)}"]
    if len(places) > _SHOWN_PLACES:
        lines.append(f"  … and {len(places) - _SHOWN_PLACES} more")
    return "\n".join(printable(line) for line in lines)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
