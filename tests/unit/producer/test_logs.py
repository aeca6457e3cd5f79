"""The feeder's events go to stderr or into a file: stdout belongs to results."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from producer.logs import log_to_file, log_to_stderr


@pytest.fixture(autouse=True)
def default_logs_afterwards() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def test_events_for_people_are_lines_on_stderr_that_cannot_steer_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log_to_stderr()
    structlog.get_logger("x").info("fed\x1b[2J", run="r1", jobs=3)
    out, err = capsys.readouterr()
    assert out == ""
    assert "\x1b" not in err
    assert "run='r1' jobs=3" in err


def test_sec_s18_events_in_a_file_are_one_json_object_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "logs" / "feeder.log"
    log_to_file(path)
    log = structlog.get_logger("x")
    log.info("fed", run='\n{"level":"info"}')
    log.debug("not wanted")
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        log.exception("failed")
    assert capsys.readouterr() == ("", "")
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    assert (first["event"], first["run"], first["level"]) == ("fed", '\n{"level":"info"}', "info")
    assert "RuntimeError: broken" in second["exception"]
