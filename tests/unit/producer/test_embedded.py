"""How much of the machine an embedded run takes by itself."""

import os
from pathlib import Path

import pytest

from producer.embedded import EmbeddedSettings, default_workers


@pytest.mark.parametrize(("jobs", "workers"), [(1, 1), (200, 1), (201, min(2, os.cpu_count() or 1))])
def test_a_second_worker_is_started_only_for_more_jobs_than_one_holds_at_once(jobs: int, workers: int) -> None:
    assert default_workers(jobs) == workers


@pytest.mark.parametrize(("workers", "concurrency", "each"), [(1, 200, 200), (2, 200, 100), (3, 200, 67), (4, 1, 1)])
def test_the_concurrency_is_that_of_all_workers_together(workers: int, concurrency: int, each: int) -> None:
    assert EmbeddedSettings(workers, concurrency, Path()).concurrency_per_worker == each
