"""Fetching ahead keeps the order and a bound."""

import threading

import pytest

from results.prefetch import THREADS, fetch_ahead


def test_the_order_is_kept_and_little_is_held() -> None:
    begun: list[int] = []
    lock = threading.Lock()

    def fetch(item: int) -> int:
        with lock:
            begun.append(item)
        return item * 2

    for taken, (item, fetched) in enumerate(fetch_ahead(fetch, range(50)), start=1):
        assert fetched.result() == item * 2
        assert item == taken - 1
        assert len(begun) <= taken + THREADS
    assert sorted(begun) == list(range(50))


def test_a_failed_fetch_shows_at_its_place() -> None:
    fetches = fetch_ahead(lambda divisor: 1 / divisor, [1, 0])
    assert next(fetches)[1].result() == 1
    with pytest.raises(ZeroDivisionError):
        next(fetches)[1].result()


def test_a_reader_that_stops_early_leaves_no_thread() -> None:
    before = threading.active_count()
    fetches = fetch_ahead(str, range(100))
    next(fetches)
    fetches.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
