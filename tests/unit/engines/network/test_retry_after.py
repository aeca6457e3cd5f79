"""How long servers ask us to wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.network.retry_after import asked_wait_seconds

NOON = 1_795_262_400.0  # Sat, 21 Nov 2026 12:00:00 GMT


def asked(retry_after: str | None = None, milliseconds: str | None = None, date: str | None = None) -> float | None:
    return asked_wait_seconds(retry_after_ms=milliseconds, retry_after=retry_after, date=date, now=NOON)


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        ("0", 0), ("7", 7), ("1.5", 1.5), ("-3", 0), ("", None), (None, None), ("soon", None), ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("Sat, 21 Nov 2026 12:00:10 GMT", 10), ("Sat, 21 Nov 2026 13:00:10 +0100", 10),
        ("Saturday, 21-Nov-26 12:00:10 GMT", 10), ("Sat Nov 21 12:00:10 2026", 10),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0),
        ("Sat, 99 Nov 2026 12:00:00 GMT", None),
    ],
)  # fmt: skip
def test_f18_seconds_and_all_three_date_forms(retry_after: str | None, seconds: float | None) -> None:
    assert asked(retry_after) == seconds


def test_f18_milliseconds_are_preferred() -> None:
    assert asked("9", "250") == 0.25
    assert asked("9", "rubbish") == 9


def test_f18_a_skewed_clock_does_no_harm_when_the_server_says_its_own_time() -> None:
    assert asked("Sat, 21 Nov 2020 12:00:30 GMT", date="Sat, 21 Nov 2020 12:00:00 GMT") == 30


@given(st.text() | st.none(), st.text() | st.none(), st.text() | st.none())
def test_f20_whatever_the_headers_hold_the_wait_is_none_or_not_negative(
    retry_after: str | None, milliseconds: str | None, date: str | None
) -> None:
    seconds = asked(retry_after, milliseconds, date)

    assert seconds is None or seconds >= 0
