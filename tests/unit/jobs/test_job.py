"""The job line that a user writes."""

import pytest
from pydantic import ValidationError

from jobs.job import JobLine, task_id


def test_a_prompt_is_enough() -> None:
    assert JobLine.model_validate({"prompt": "Hello"}).prompt == "Hello"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({}, 'needs either "messages" or "prompt"'),
        ({"prompt": "x", "messages": [{"role": "user", "content": "x"}]}, "not both"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, r"messages\[0\] needs a"),
        ({"prompt": "x", "promt": "y"}, "promt"),
        ({"prompt": "x", "max_turns": 0}, "max_turns"),
        ({"prompt": "x", "seed": "seven"}, "seed"),
    ],
)
def test_a_line_that_cannot_be_a_job_is_refused_with_its_reason(line: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        JobLine.model_validate(line)


def test_a_task_id_reads_well_and_sorts() -> None:
    assert task_id("weather-1a2b3c4d", 42) == "weather-1a2b3c4d.000042"
    assert task_id("r", 12_345_678) == "r.12345678"
