"""How a run stands or ended: the fixed summary object and the exit code."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jobs.ledger.progress import Snapshot
from producer.exit_codes import ExitCode
from producer.terminal import printable
from results.entries import Entry


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run has used so far."""

    input_tokens: int = 0
    output_tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """The counts of a run; what is not settled is pending, so the counts always add up to `jobs`."""

    run_id: str
    jobs: int
    results: str
    seconds: float
    ok: int = 0
    failed: int = 0
    cancelled: int = 0
    dead: int = 0
    usage: Usage = Usage()

    @property
    def pending(self) -> int:
        """Jobs without a visible record."""
        return self.jobs - self.ok - self.failed - self.cancelled - self.dead

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a command that waited for this run to end."""
        return ExitCode.ALL_OK if self.ok == self.jobs else ExitCode.JOBS_NOT_OK

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints, with exactly the documented keys."""
        return {
            "run_id": self.run_id,
            "jobs": self.jobs,
            "ok": self.ok,
            "failed": self.failed,
            "cancelled": self.cancelled,
            "dead": self.dead,
            "pending": self.pending,
            "results": self.results,
            "seconds": round(self.seconds, 3),
            "usage": {
                "input_tokens": self.usage.input_tokens,
                "output_tokens": self.usage.output_tokens,
                "model_calls": self.usage.model_calls,
                "tool_calls": self.usage.tool_calls,
            },
        }

    def to_text(self) -> str:
        """The same for a person: two lines."""
        parts = [f"{self.ok} ok"]
        for name in ("failed", "cancelled", "dead", "pending"):
            count = getattr(self, name)
            if count:
                parts.append(f"{count} {name}")
        tokens = f"{self.usage.input_tokens:,} input and {self.usage.output_tokens:,} output tokens"
        calls = f"{self.usage.model_calls:,} model calls, {self.usage.tool_calls:,} tool calls"
        jobs = f"{counted_jobs(self.jobs)}: {', '.join(parts)}"
        return (
            f"run {self.run_id}: {jobs} in {self.seconds:.1f} s ({calls}, {tokens})\n"
            f"results: {self.results.rstrip('/')}/{self.run_id}"
        )


def summary_of_snapshot(snapshot: Snapshot, *, run_id: str, results: str, seconds: float) -> Summary:
    """How a run stands by the ledger's counts."""
    return Summary(
        run_id=run_id,
        jobs=snapshot.jobs,
        results=results,
        seconds=seconds,
        ok=snapshot.ok,
        failed=snapshot.failed,
        cancelled=snapshot.cancelled,
        dead=snapshot.dead,
        usage=Usage(snapshot.input_tokens, snapshot.output_tokens, snapshot.model_calls, snapshot.tool_calls),
    )


def summary_of_entries(entries: Iterable[Entry], *, run_id: str, jobs: int, results: str, seconds: float) -> Summary:
    """How a run stands by what is stored: `entries` are the visible ones, one per job."""
    by_status = {"ok": 0, "failed": 0, "cancelled": 0, "dead": 0}
    input_tokens = output_tokens = model_calls = tool_calls = 0
    for entry in entries:
        by_status[entry.status] += 1
        input_tokens += entry.input_tokens
        output_tokens += entry.output_tokens
        model_calls += entry.model_calls
        tool_calls += entry.tool_calls
    return Summary(
        run_id=run_id,
        jobs=jobs,
        results=results,
        seconds=seconds,
        usage=Usage(input_tokens, output_tokens, model_calls, tool_calls),
        **by_status,
    )


def counted_jobs(jobs: int) -> str:
    """A number of jobs in words."""
    return f"{jobs:,} job{'' if jobs == 1 else 's'}"


def waiting_line(run: str, paused: int) -> str:
    """How many jobs wait for answers from outside, and how to give them; `run` is how the person names the run."""
    wait = "waits" if paused == 1 else "wait"
    return (
        f"{counted_jobs(paused)} {wait} for answers from outside: parley pending {run} lists them, "
        f"parley answer {run} JOB --results FILE gives them"
    )


def print_summary(summary: Summary, *, as_json: bool) -> None:
    """Print on stdout how a run stands: for a person, or as the one JSON object that is the last line."""
    text = json.dumps(summary.to_json()) if as_json else printable(summary.to_text())
    print(text, flush=True)  # noqa: T201 - stdout is for results
