"""A job id that stands twice is noticed, and memory does not grow with the number of jobs."""

import tracemalloc

from producer.duplicate_ids import SeenIds


def test_the_first_line_of_an_id_is_remembered() -> None:
    with SeenIds() as seen:
        assert seen.first_line_of("a", 1) is None
        assert seen.first_line_of("b", 2) is None
        assert seen.first_line_of("a", 3) == 1
        assert seen.first_line_of("a", 4) == 1


def test_ids_that_differ_only_in_case_or_accents_are_different() -> None:
    with SeenIds() as seen:
        assert [seen.first_line_of(job_id, 1) for job_id in ("a", "A", "á", "a ")] == [None] * 4


def test_python_s_memory_does_not_grow_with_the_number_of_ids() -> None:
    with SeenIds() as seen:
        seen.first_line_of("warm", 0)
        tracemalloc.start()
        for number in range(20_000):
            seen.first_line_of(f"job-{number}", number)
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak_bytes < 100_000
