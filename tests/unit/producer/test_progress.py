"""Progress is one plain line every few seconds where no terminal is, and its figures follow the snapshots."""

import io

from rich.console import Console

from jobs.ledger.progress import Snapshot
from producer.progress import LINE_EVERY_SECONDS, Pace, ProgressDisplay, Rate, duration, line_of, table_of


def test_a_rate_that_does_not_change_is_said_at_once_and_stays() -> None:
    rate = Rate()
    for second in range(200):
        rate.observe(second * 7.0, float(second))
        assert second == 0 or abs(rate.per_second - 7.0) < 1e-9


def test_a_rate_follows_a_change_within_about_two_minutes() -> None:
    rate = Rate()
    for second in range(100):
        rate.observe(second * 10.0, float(second))
    for second in range(100, 220):
        rate.observe(1000.0, float(second))
    assert rate.per_second < 2.0


def test_a_count_that_falls_is_a_rate_of_zero() -> None:
    rate = Rate()
    rate.observe(100.0, 0.0)
    rate.observe(50.0, 1.0)
    assert rate.per_second == 0.0


def test_the_remaining_time_is_unknown_before_anything_is_done_and_zero_at_the_end() -> None:
    pace = Pace()
    pace.observe(Snapshot("r", 10), 0.0)
    assert pace.remaining_seconds(Snapshot("r", 10)) is None
    pace.observe(Snapshot("r", 10, ok=5), 5.0)
    assert pace.remaining_seconds(Snapshot("r", 10, ok=5)) == 5.0
    assert pace.remaining_seconds(Snapshot("r", 10, ok=10)) == 0.0


def test_a_line_names_troubles_only_when_there_are_some() -> None:
    assert "failed" not in line_of(Snapshot("r", 10, ok=5, in_flight=2), Pace())
    line = line_of(Snapshot("r", 10, ok=5, failed=1, later=2, in_flight=2), Pace())
    assert line.startswith("6/10 done, 5 ok, 1 failed, 2 waiting to be tried again, 2 in flight")


def test_durations_read_as_people_say_them() -> None:
    assert [duration(value) for value in (None, 0.4, 59.4, 200, 18120)] == [
        "?",
        "0 s",
        "59 s",
        "3 min 20 s",
        "5 h 2 min",
    ]


def test_without_a_terminal_lines_come_every_few_seconds_and_not_with_every_snapshot() -> None:
    now, told = [0.0], list[str]()
    with ProgressDisplay("r", is_live=False, clock=lambda: now[0], tell=told.append) as display:
        for second in range(int(LINE_EVERY_SECONDS * 3) + 1):
            now[0] = float(second)
            display.show(Snapshot("r", 10, ok=min(second, 10)))
    assert len(told) == 3


def test_the_table_shows_what_the_line_says() -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(table_of("my-run", Snapshot("my-run", 10, ok=5, failed=1, in_flight=3), Pace(), 65))
    text = console.export_text()
    assert "my-run" in text
    assert "6 of 10" in text
    assert "1 min 5 s" in text


def test_a_run_that_only_waits_for_answers_says_once_how_to_give_them() -> None:
    told: list[str] = []
    display = ProgressDisplay("r", is_live=False, clock=lambda: 0.0, tell=told.append, named="runs/r")
    with display:
        display.show(Snapshot("r", 3, in_flight=2, paused=1))
        assert told == []
        display.show(Snapshot("r", 3, ok=1, paused=2))
        display.show(Snapshot("r", 3, ok=1, paused=2))
    (line,) = told
    assert line.startswith("2 jobs wait for answers from outside: parley pending runs/r lists them")


def test_a_line_says_how_many_jobs_wait_for_answers() -> None:
    assert "2 waiting for answers" in line_of(Snapshot("r", 3, ok=1, paused=2), Pace())
