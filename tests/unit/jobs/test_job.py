"""The job line that a user writes."""

import pytest
from pydantic import ValidationError

from jobs.job import JobLine, task_id


def test_a_prompt_is_enough() -> None:
    assert JobLine.model_validate({"prompt": "Hello"}).prompt == "Hello"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"prompt": "a", "messages": [{"role": "user"}]}, 'needs either "messages" or "prompt", not both'),
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


@pytest.mark.parametrize(
    "key", ["engine", "engines", "module", "functions", "setup", "teardown", "registry", "permissions"]
)
@pytest.mark.parametrize("value", ["os:system", {"type": "local", "module": "os"}])
def test_sec_s23_a_job_names_no_code(key: str, value: object) -> None:
    with pytest.raises(ValidationError, match=rf"{key}\n  Extra inputs are not permitted"):
        JobLine.model_validate({"prompt": "x", key: value})


@pytest.mark.parametrize("value", [[{"name": "system", "engine": "os:system"}], {"w::a": "os:system"}, "os:system"])
def test_sec_s23_a_job_chooses_tools_by_name_and_brings_none(value: object) -> None:
    with pytest.raises(ValidationError, match="tools"):
        JobLine.model_validate({"prompt": "x", "tools": value})


def test_a_task_id_reads_well_and_sorts() -> None:
    assert task_id("weather-1a2b3c4d", 42) == "weather-1a2b3c4d.000042"
    assert task_id("r", 12_345_678) == "r.12345678"
