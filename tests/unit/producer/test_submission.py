"""The same command gives the same run; what differs is a conflict or another run (F35, F36)."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.errors import RunConflict
from jobs.run import read_part
from producer.errors import InputInvalid, UsageInvalid
from producer.staged_input import OnBadLine
from producer.submission import SubmissionRequest, stored_summary, submit

RECIPE = """
name: same
model: {provider: offline}
tools:
  registry: [{type: file, path: tools.yaml, namespace: shop}]
  engines: {simulated: {type: lm, lm_config: {type: offline}}}
"""
TOOLS = "price: {description: A price., parameters: {type: object}}\n"


@pytest.fixture
def request_(tmp_path: Path) -> SubmissionRequest:
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    (tmp_path / "tools.yaml").write_text(TOOLS)
    (tmp_path / "jobs.jsonl").write_text('{"prompt": "a"}\n{"prompt": "b"}\n')
    return SubmissionRequest(
        tmp_path / "recipe.yaml", None, str(tmp_path / "runs"), None, OnBadLine.ERROR, is_local=True
    )


def test_the_same_input_is_the_same_run_wherever_its_files_lie(request_: SubmissionRequest, tmp_path: Path) -> None:
    first = submit(request_)
    assert submit(request_).manifest == first.manifest
    (tmp_path / "other.jsonl").write_bytes((tmp_path / "jobs.jsonl").read_bytes())
    assert submit(replace(request_, jobs=str(tmp_path / "other.jsonl"))).manifest == first.manifest
    assert first.manifest.run_id.startswith("same-")
    assert len(first.manifest.run_id) == len("same-") + 8


def test_other_jobs_other_tools_or_another_recipe_are_another_run(request_: SubmissionRequest, tmp_path: Path) -> None:
    run_ids = {submit(request_).manifest.run_id}
    (tmp_path / "jobs.jsonl").write_text('{"prompt": "a"}\n')
    run_ids.add(submit(request_).manifest.run_id)
    (tmp_path / "tools.yaml").write_text(TOOLS.replace("A price", "The price"))
    run_ids.add(submit(request_).manifest.run_id)
    (tmp_path / "recipe.yaml").write_text(RECIPE + "seed: 5\n")
    run_ids.add(submit(request_).manifest.run_id)
    assert len(run_ids) == 4


def test_a_named_run_is_attached_to_when_equal_and_a_conflict_otherwise(
    request_: SubmissionRequest, tmp_path: Path
) -> None:
    named = replace(request_, run_id="r1")
    first = submit(named)
    assert submit(named).manifest == first.manifest
    (tmp_path / "jobs.jsonl").write_text('{"prompt": "a"}\n')
    with pytest.raises(RunConflict, match="jobs"):
        submit(named)
    (part,) = first.manifest.parts
    assert len(read_part(first.store, part)) == 2, "the parts of the run that is there are as they were"


def test_a_stored_run_is_resumed_without_its_jobs_file(request_: SubmissionRequest, tmp_path: Path) -> None:
    first = submit(replace(request_, run_id="r1"))
    (tmp_path / "jobs.jsonl").unlink()
    assert submit(replace(request_, run_id="r1", is_resumed=True)).manifest == first.manifest
    (tmp_path / "tools.yaml").write_text(TOOLS.replace("A price", "The price"))
    with pytest.raises(RunConflict, match="its tools changed"):
        submit(replace(request_, run_id="r1", is_resumed=True))


def test_an_attached_run_is_not_read_again_line_by_line(
    request_: SubmissionRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = submit(request_)
    monkeypatch.setattr("producer.submission.staged_input", None)
    assert submit(request_).manifest == first.manifest


def test_nothing_is_stored_of_an_input_that_is_not_good(request_: SubmissionRequest, tmp_path: Path) -> None:
    (tmp_path / "jobs.jsonl").write_text('{"prompt": "a"}\n' * 2500 + "{}\n")
    with pytest.raises(InputInvalid, match=r"jobs\.jsonl:2501:1"):
        submit(request_)
    assert [path for path in (tmp_path / "runs").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("run_id", ["../x", "a/b", "ü", "x" * 129, "", ".."])
def test_sec_s15_a_run_id_that_could_leave_its_folder_is_refused(request_: SubmissionRequest, run_id: str) -> None:
    with pytest.raises(UsageInvalid, match="--run-id"):
        submit(replace(request_, run_id=run_id))


def test_a_new_run_has_everything_pending(request_: SubmissionRequest) -> None:
    submission = submit(request_)
    summary = stored_summary(submission.store, submission.manifest)
    assert (summary.jobs, summary.pending, summary.ok) == (2, 2, 0)
    assert json.dumps(summary.to_json())
