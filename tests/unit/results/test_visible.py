"""The places of the visible records: small, and right at the edges of a page."""

from results.entries import Entry
from results.visible import PAGE_JOBS, VisibleLines


def entry(index: int, attempt: int = 1) -> Entry:
    return Entry(index, attempt, "ok", 0, 0, 0, 0)


def test_the_first_shard_keeps_a_job_of_the_same_attempt() -> None:
    visible = VisibleLines()
    shards = [[entry(PAGE_JOBS - 1), entry(PAGE_JOBS)], [entry(PAGE_JOBS), entry(PAGE_JOBS - 1, 0)]]
    for ordinal, entries in enumerate(shards):
        visible.add_shard(ordinal, entries)
    assert visible.shards() == {0, 1}
    assert [line for line, _ in visible.of_shard(0, shards[0])] == [1]
    assert [line for line, _ in visible.of_shard(1, shards[1])] == [1]


def test_a_shard_that_was_not_taken_in_shows_nothing() -> None:
    visible = VisibleLines()
    assert list(visible.of_shard(0, [entry(3)])) == []
    assert visible.shards() == set()


def test_a_million_jobs_take_twelve_bytes_each() -> None:
    visible = VisibleLines()
    for first in range(0, 1_000_000, 5000):
        visible.add_shard(first // 5000, (entry(index) for index in range(first, first + 5000)))
    pages = visible._pages.values()
    nbytes = sum(len(column) * column.itemsize for page in pages for column in (page.attempts, page.shards, page.lines))
    assert nbytes == 16 * PAGE_JOBS * 12
    assert visible.shards() == set(range(200))
