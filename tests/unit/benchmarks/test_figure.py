"""Tests of figures: what the limit is compared with, and how a line reads."""

from benchmarks.calibration import Sample, sampled
from benchmarks.figure import Figure


def test_cpu_times_are_held_as_they_would_be_at_calibration_26() -> None:
    figure = Figure.of_cpu("call", [Sample(1.0, 13.0, 13.0)], limit=1.5)
    assert (figure.value, figure.held) == (1.0, 2.0)
    assert not figure.is_within
    assert "OVER (1.33)" in figure.line()


def test_the_calibrations_before_and_after_count_alike() -> None:
    assert Sample(1.0, 26.0, 78.0).at_undisturbed == 0.5


def test_one_slow_sample_does_not_move_the_figure() -> None:
    samples = [Sample(1.0, 26.0, 26.0), Sample(9.0, 26.0, 26.0), Sample(1.2, 26.0, 26.0)]
    figure = Figure.of_cpu("call", samples, limit=1.5)
    assert (figure.value, figure.spread, figure.is_within) == (1.2, (1.0, 9.0), True)


def test_of_two_things_the_median_of_the_paired_ratios_counts() -> None:
    # The machine slows down by half after the first pair: each pair has the same ratio still.
    ours = [Sample(1.0, 26.0, 26.0), Sample(2.0, 52.0, 52.0), Sample(2.0, 52.0, 52.0)]
    theirs = [Sample(4.0, 26.0, 26.0), Sample(8.0, 52.0, 52.0), Sample(8.0, 52.0, 52.0)]
    assert Figure.of_pairs("ours : theirs", ours, theirs, limit=0.25).ratio == 1.0


def test_a_rate_below_its_limit_is_over() -> None:
    slow = Figure.plain("rate", [10_000.0], "jobs/s", 20_000, is_least=True)
    assert (slow.ratio, slow.is_within) == (2.0, False)
    assert "limit >= 20,000: OVER (2.00)" in slow.line()


def test_a_figure_without_a_limit_is_within() -> None:
    figure = Figure.plain("memory", [126.4], "MB")
    assert figure.ratio is None
    assert figure.is_within
    assert "limit" not in figure.line()


def test_the_history_keeps_what_was_held_against_what() -> None:
    kept = Figure.of_cpu("call", [Sample(1 / 3, 13.0, 13.0)], limit=0.5).to_dict()
    assert kept == {
        "name": "call",
        "value": 0.33333,
        "unit": "CPU-ms",
        "held": 0.66667,
        "limit": 0.5,
        "ratio": 1.3333,
        "spread": [0.33333, 0.33333],
        "calibration_ms": [13.0],
    }


def test_a_sample_is_taken_between_two_calibrations() -> None:
    sample = sampled(lambda: 7.0)
    assert sample.value == 7.0
    assert sample.before_ms > 0
    assert sample.after_ms > 0
