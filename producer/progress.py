"""How far a run is, told on stderr: a live table on a terminal, one plain line every few seconds elsewhere."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from jobs.ledger.progress import Snapshot
from producer.outcome import waiting_line
from producer.terminal import printable, say

LINE_EVERY_SECONDS = 5.0
_RATE_WINDOW_SECONDS = 60.0
_MINUTE, _HOUR = 60, 3600


@dataclass(slots=True)
class Rate:
    """A quantity that only grows, turned into units per second, smoothed over about a minute."""

    per_second: float = 0.0
    _total: float = math.nan
    _at_seconds: float = 0.0
    _seen_seconds: float = 0.0

    def observe(self, total: float, at_seconds: float) -> None:
        """Take note that the quantity is `total` now."""
        if math.isnan(self._total):
            self._total, self._at_seconds = total, at_seconds
            return
        passed = at_seconds - self._at_seconds
        if passed <= 0:
            return
        now = max(total - self._total, 0.0) / passed
        self._seen_seconds += passed
        # A plain average until a minute has been seen, so that the first figures are not drawn towards zero.
        weight = max(1 - math.exp(-passed / _RATE_WINDOW_SECONDS), passed / self._seen_seconds)
        self.per_second += (now - self.per_second) * min(weight, 1.0)
        self._total, self._at_seconds = total, at_seconds


@dataclass(slots=True)
class Pace:
    """The rates of a run and when it will be done."""

    conversations: Rate = field(default_factory=Rate)
    tokens: Rate = field(default_factory=Rate)

    def observe(self, moment: Snapshot, at_seconds: float) -> None:
        """Take note of a snapshot."""
        self.conversations.observe(moment.settled, at_seconds)
        self.tokens.observe(moment.input_tokens + moment.output_tokens, at_seconds)

    def remaining_seconds(self, moment: Snapshot) -> float | None:
        """How long the rest takes at this pace; None while nothing is known."""
        left = moment.jobs - moment.settled
        if left == 0:
            return 0.0
        return left / self.conversations.per_second if self.conversations.per_second > 0 else None


def line_of(moment: Snapshot, pace: Pace) -> str:
    """One plain line, such as a log wants it."""
    parts = [f"{moment.settled}/{moment.jobs} done", f"{moment.ok} ok"]
    parts += [f"{count} {name}" for name, count in _troubles(moment)]
    parts += [
        f"{moment.in_flight} in flight",
        f"{pace.conversations.per_second:.1f} conversations/s",
        f"{pace.tokens.per_second:,.0f} tokens/s",
        f"ETA {duration(pace.remaining_seconds(moment))}",
    ]
    return ", ".join(parts)


def table_of(run_id: str, moment: Snapshot, pace: Pace, elapsed_seconds: float) -> Table:
    """The same as a table for the terminal."""
    table = Table(title=f"run {run_id}", title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    share = moment.settled / moment.jobs if moment.jobs else 0.0
    table.add_row("done", f"{moment.settled:,} of {moment.jobs:,}", f"{share:.1%}")
    table.add_row("ok", f"{moment.ok:,}", "")
    for name, count in _troubles(moment):
        table.add_row(name, f"[red]{count:,}[/red]" if name in {"failed", "dead"} else f"{count:,}", "")
    table.add_row("in flight", f"{moment.in_flight:,}", f"{moment.queued:,} queued")
    table.add_row("conversations/s", f"{pace.conversations.per_second:,.1f}", "")
    table.add_row("tokens/s", f"{pace.tokens.per_second:,.0f}", "")
    table.add_row("elapsed", duration(elapsed_seconds), f"ETA {duration(pace.remaining_seconds(moment))}")
    return table


def duration(seconds: float | None) -> str:
    """Seconds as people say them: `4 s`, `3 min 20 s`, `5 h 2 min`; `?` when not known."""
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def _troubles(moment: Snapshot) -> list[tuple[str, int]]:
    named = (
        ("failed", moment.failed),
        ("dead", moment.dead),
        ("cancelled", moment.cancelled),
        ("waiting to be tried again", moment.later),
        ("waiting for a permit", moment.parked),
        ("waiting for answers", moment.paused),
    )
    return [(name, count) for name, count in named if count]


class ProgressDisplay:
    """Shows snapshots as they come, for as long as the block runs."""

    def __init__(
        self,
        run_id: str,
        *,
        is_live: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[str], None] = say,
        named: str | None = None,
    ) -> None:
        """`is_live` says whether stderr can show a table that changes, None looks; `named` is how to name the run."""
        self._named = named or run_id
        self._has_told_of_waiting = False
        self._run_id = run_id
        self._clock = clock
        self._tell = tell
        self._console = Console(stderr=True, highlight=False)
        self._live = None
        if self._console.is_terminal if is_live is None else is_live:
            self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._pace = Pace()
        self._started = clock()
        self._line_due = self._started + LINE_EVERY_SECONDS

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, moment: Snapshot) -> None:
        """Take a snapshot of the ledger and show it when it is time to."""
        now = self._clock()
        self._pace.observe(moment, now)
        self._tell_of_waiting(moment)
        if self._live:
            self._live.update(table_of(self._run_id, moment, self._pace, now - self._started))
        elif now >= self._line_due:
            self._tell(line_of(moment, self._pace))
            self._line_due = now + LINE_EVERY_SECONDS

    def _tell_of_waiting(self, moment: Snapshot) -> None:
        """Say once how to answer, as soon as nothing else goes on: the run may wait for this person."""
        is_idle = moment.paused == moment.pending > 0
        if is_idle and not self._has_told_of_waiting:
            if self._live:
                self._live.console.print(printable(waiting_line(self._named, moment.paused)), markup=False)
            else:
                self._tell(waiting_line(self._named, moment.paused))
        self._has_told_of_waiting = moment.paused > 0 and (is_idle or self._has_told_of_waiting)
