"""How a run stands or ended: the fixed summary object and the exit code."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol


class ExitCode(IntEnum):
    """What the shell sees."""

    ALL_OK = 0
    INTERNAL = 1
    USAGE = 2
    INVALID = 3
    JOBS_NOT_OK = 4
    UNREACHABLE = 5
    INTERRUPTED = 130


class Counts(Protocol):
    """What is read of the ledger's snapshot of a run."""

    @property
    def jobs(self) -> int: ...
    @property
    def ok(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def cancelled(self) -> int: ...
    @property
    def dead(self) -> int: ...
    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def model_calls(self) -> int: ...
    @property
    def tool_calls(self) -> int: ...


class Settled(Protocol):
    """What is read of one entry of a shard."""

    @property
    def status(self) -> str: ...
    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def model_calls(self) -> int: ...
    @property
    def tool_calls(self) -> int: ...


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
        return (
            f"run {self.run_id}: {self.jobs} jobs: {', '.join(parts)} in {self.seconds:.1f} s ({calls}, {tokens})\n"
            f"results: {self.results.rstrip('/')}/{self.run_id}"
        )


def summary_of_counts(counts: Counts, *, run_id: str, results: str, seconds: float) -> Summary:
    """The summary of what the ledger knows."""
    return Summary(
        run_id=run_id,
        jobs=counts.jobs,
        results=results,
        seconds=seconds,
        ok=counts.ok,
        failed=counts.failed,
        cancelled=counts.cancelled,
        dead=counts.dead,
        usage=Usage(counts.input_tokens, counts.output_tokens, counts.model_calls, counts.tool_calls),
    )


def summary_of_entries(
    entries: Iterable[Settled], *, run_id: str, jobs: int, results: str, seconds: float
) -> Summary:
    """The summary of what the object store holds: `entries` are the visible ones, one per job."""
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
