"""When a server that does not answer is asked again."""

from engines.mcp.breaker import FAILURES_UNTIL_OPEN, LONGEST_PAUSE_SECONDS, Breaker


class Clock:
    """A time that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_f22_pauses_double_up_to_a_bound() -> None:
    breaker = Breaker(Clock())
    pauses = []
    for _ in range(12):
        breaker.failed("gone")
        pauses.append(breaker.pause_seconds())
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8]
    assert pauses[-1] == LONGEST_PAUSE_SECONDS


def test_f22_it_opens_after_failures_in_a_row_and_closes_with_a_success() -> None:
    breaker = Breaker(Clock())
    for _ in range(FAILURES_UNTIL_OPEN - 1):
        breaker.failed("gone")
    assert not breaker.is_open
    breaker.failed("gone")
    assert breaker.is_open
    breaker.succeeded()
    assert not breaker.is_open
    assert breaker.pause_seconds() == 0.0


def test_f22_an_open_one_lets_a_single_try_through_when_its_pause_is_over() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAILURES_UNTIL_OPEN):
        breaker.failed("gone")
    clock.now += breaker.pause_seconds()
    assert breaker.pause_seconds() == 0.0
    breaker.trying()
    assert breaker.pause_seconds() > 0.0
