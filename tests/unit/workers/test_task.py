"""What a task message may say."""

from typing import Any

import pytest

from jobs.job import JobReference
from workers.task import job_of_message


def test_a_message_of_ours_names_a_job() -> None:
    assert job_of_message("run", 3, ["hr_api"]) == JobReference("run", 3, ("hr_api",))


@pytest.mark.parametrize(
    "arguments",
    [
        (None, None),
        ("run", "3"),
        ("run", -1),
        ("run", True),
        ("run", 1.5),
        ("../run", 1),
        ("run", 1, [1]),
        ("run", 1, "hr_api" * 20),
        ("run", 1, None),
        ("run", 1, ["n"] * 65),
        ({"run": 1}, 1),
    ],
)
def test_f32_any_other_message_names_none(arguments: tuple[Any, ...]) -> None:
    assert job_of_message(*arguments) is None
