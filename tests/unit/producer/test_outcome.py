"""The counts of a run always add up, and the exit code follows from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.ledger.progress import Snapshot
from producer.exit_codes import ExitCode
from producer.outcome import Summary, summary_of_entries, summary_of_snapshot
from results.entries import Entry

counts = st.integers(0, 1000)


@given(counts, counts, counts, counts, counts)
def test_jobs_is_always_the_sum_of_the_statuses(ok: int, failed: int, cancelled: int, dead: int, pending: int) -> None:
    jobs = ok + failed + cancelled + dead + pending
    summary = Summary("r", jobs, "file:///r", 1.0, ok=ok, failed=failed, cancelled=cancelled, dead=dead).to_json()
    assert summary["jobs"] == sum(summary[status] for status in ("ok", "failed", "cancelled", "dead", "pending"))
    assert summary["pending"] == pending


def test_the_json_object_has_exactly_the_documented_keys() -> None:
    summary = Summary("r", 1, "file:///r", 1.23456, ok=1).to_json()
    assert list(summary) == [
        "run_id", "jobs", "ok", "failed", "cancelled", "dead", "pending", "results", "seconds", "usage",
    ]  # fmt: skip
    assert list(summary["usage"]) == ["input_tokens", "output_tokens", "model_calls", "tool_calls"]
    assert summary["seconds"] == 1.235


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        ({"ok": 3}, ExitCode.ALL_OK),
        ({"ok": 2, "failed": 1}, ExitCode.JOBS_NOT_OK),
        ({"ok": 2, "dead": 1}, ExitCode.JOBS_NOT_OK),
        ({"ok": 2, "cancelled": 1}, ExitCode.JOBS_NOT_OK),
        ({"ok": 2}, ExitCode.JOBS_NOT_OK),
    ],
)
def test_only_a_run_whose_jobs_all_ended_ok_exits_with_zero(ended: dict[str, int], code: ExitCode) -> None:
    assert Summary("r", 3, "file:///r", 1.0, **ended).exit_code == code  # type: ignore[arg-type]


def test_the_summary_of_the_store_counts_every_visible_entry_once() -> None:
    entries = [Entry(0, 1, "ok", 10, 5, 2, 1), Entry(1, 2, "failed", 1, 0, 1, 0)]
    summary = summary_of_entries(entries, run_id="r", jobs=4, results="file:///r", seconds=0)
    assert (summary.ok, summary.failed, summary.pending) == (1, 1, 2)
    assert summary.to_json()["usage"] == {"input_tokens": 11, "output_tokens": 5, "model_calls": 3, "tool_calls": 1}


def test_the_summary_of_the_ledger_says_the_same_as_its_snapshot() -> None:
    snapshot = Snapshot("r", 5, ok=1, failed=1, cancelled=1, dead=1, input_tokens=7)
    summary = summary_of_snapshot(snapshot, run_id="r", results="file:///r", seconds=2)
    assert summary.pending == snapshot.pending == 1
    assert summary.usage.input_tokens == 7


def test_the_text_names_what_is_not_ok_and_where_the_results_lie() -> None:
    text = Summary("r1", 3, "file:///x/", 1.0, ok=1, dead=1).to_text()
    assert "1 ok, 1 dead, 1 pending" in text
    assert text.endswith("results: file:///x/r1")
