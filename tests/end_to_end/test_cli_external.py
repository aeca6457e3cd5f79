"""External calls from the command line: the example with its executor, and a person who answers by hand."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from examples.external.executor import PEOPLE
from jobs.paused import answers_folder
from producer.children import private_broker
from producer.errors import CallUnknown, DependencyUnreachable, NoSuchJob, NotPaused, ResultInvalid
from producer.external import ExternalTools
from producer.external_calls import PendingJob
from results.reading import visible_records
from results.store import open_store
from tests.support.cluster import PARLEY, check_calls_are_answered, cluster
from tests.support.redis_server import free_port
from tests.support.worker_process import ROOT

RECIPE = str(ROOT / "examples" / "external" / "recipe.yaml")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "NO_COLOR": "1"}
RUN = "refunds"


def parley(*arguments: str, cwd: Path, given: str | None = None) -> CompletedProcess[str]:
    return subprocess.run(
        [*PARLEY, *arguments],
        check=False,
        cwd=cwd,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        input=given,
    )


@contextmanager
def running(folder: Path, recipe: str = RECIPE, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`parley run` as a process, which a test may end."""
    command = [*PARLEY, "run", recipe, "--results", "runs", "--run-id", RUN, "--workers", "1", "--json", *arguments]
    with subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                process.communicate(timeout=60)


def summary_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=100)
    assert out.strip(), err
    return {**json.loads(out.strip().splitlines()[-1]), "exit_code": process.returncode, "stderr": err}


def records(folder: Path) -> dict[str, dict[str, Any]]:
    return {record["job_id"]: record for record in visible_records(open_store(str(folder / "runs")), RUN)}


@pytest.mark.timeout(60)
def test_the_example_pauses_and_goes_on_with_its_executor(tmp_path: Path) -> None:
    executor = [sys.executable, "-m", "examples.external.executor", str(tmp_path / "runs" / RUN)]
    with (
        subprocess.Popen(executor, cwd=ROOT, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as answering,
        running(tmp_path) as process,
    ):
        summary = summary_of(process)
        said, _ = answering.communicate(timeout=60)
    assert (summary["exit_code"], summary["ok"]) == (0, 5)
    assert answering.returncode == 0, "it ends with the run"
    made = records(tmp_path)
    for record in made.values():
        check_calls_are_answered(record["messages"])

    assert [entry["name"] for entry in made["three-pauses"]["tool_results"]] == [
        "people::approve_refund", "people::inspect_parcel", "people::call_customer",
    ]  # fmt: skip
    assert made["three-pauses"]["attempt"] == 4, "s9: three pauses, each with an attempt of its own"
    assert all(entry["metadata"]["external"] for entry in made["three-pauses"]["tool_results"])
    mixed = made["mixed"]["messages"]
    assert [call["function"]["name"] for call in mixed[2]["tool_calls"]] == [
        "shop__find_order",
        "people__approve_refund",
    ]
    (late,) = made["late"]["tool_results"]
    assert (late["error_type"], late["error"]) == ("timeout", "no answer came from outside within 4 seconds")
    (cancelled,) = made["cancelled"]["tool_results"]
    assert (cancelled["error_type"], cancelled["error"]) == ("external", "cancelled: the customer has gone home")
    assert made["nobody-asked"]["attempt"] == 1
    assert "late: people::inspect_parcel late" in said or "late: too late" in said
    assert said.count(" accepted") == 5


# By hand


@pytest.fixture
def by_hand(tmp_path: Path) -> Path:
    """The example's run, with time enough, and nobody who answers."""
    text = Path(RECIPE).read_text().replace("deadline_seconds: 4 ", "deadline_seconds: null ")
    (tmp_path / "recipe.yaml").write_text(text)
    jobs = [line for line in (ROOT / "examples/external/jobs.jsonl").read_text().splitlines() if "nobody" not in line]
    (tmp_path / "jobs.jsonl").write_text("\n".join(jobs[:3]) + "\n")
    return tmp_path


def wait_for(folder: Path, jobs: int) -> list[PendingJob]:
    """Wait until so many jobs wait; the run is just being started."""
    wait = threading.Event()
    while private_broker(open_store(str(folder / "runs")).url, RUN) is None:
        wait.wait(0.05)
    with ExternalTools(str(folder / "runs" / RUN)) as tools:
        while len(found := tools.pending()) < jobs:
            tools.wait(30)
    return found


def right(job: PendingJob) -> dict[str, Any]:
    return {call.call_id: PEOPLE[call.name](**call.arguments) for call in job.calls}


def stored_answers(folder: Path) -> list[str]:
    return sorted(stored.key for stored in open_store(str(folder / "runs")).list(answers_folder(RUN)))


@pytest.mark.timeout(60)
def test_a_person_sees_what_waits_and_answers_by_hand(by_hand: Path) -> None:
    with running(by_hand, "recipe.yaml") as process:
        jobs = {job.job_id: job for job in wait_for(by_hand, 3)}
        listed = parley("pending", f"runs/{RUN}", "--json", cwd=by_hand)
        assert listed.returncode == 0
        told = json.loads(listed.stdout.splitlines()[-1])
        assert [each["job_id"] for each in told["pending"]] == ["three-pauses", "mixed", "late"]
        assert set(told["pending"][0]["calls"][0]) == {"call_id", "name", "arguments", "ends_at"}
        assert "people::approve_refund" in parley("pending", f"runs/{RUN}", cwd=by_hand).stdout
        status = parley("status", f"runs/{RUN}", cwd=by_hand)
        assert "3 jobs wait for answers from outside: parley pending" in status.stderr

        (call,) = jobs["mixed"].calls
        (by_hand / "wrong.json").write_text(json.dumps({call.call_id: {"approved": "perhaps"}}))
        wrong = parley("answer", f"runs/{RUN}", "mixed", "--results", "wrong.json", cwd=by_hand)
        assert wrong.returncode == 3
        assert f"call {call.call_id} of people::approve_refund: result" in wrong.stderr
        assert stored_answers(by_hand) == [], "nothing was taken"

        lines = "".join(json.dumps({"call_id": name, "result": got}) for name, got in right(jobs["mixed"]).items())
        taken = parley("answer", f"runs/{RUN}", "mixed", "--results", "-", "--json", cwd=by_hand, given=lines)
        assert taken.returncode == 0, taken.stderr
        outcome = {"run_id": RUN, "index": 1, "job": "resumed", "calls": {call.call_id: "accepted"}}
        assert json.loads(taken.stdout) == outcome
        twice = parley("answer", f"runs/{RUN}", f"{RUN}.000001", "--results", "-", cwd=by_hand, given=lines)
        assert twice.returncode == 3
        assert "answered already" in twice.stderr or "is finished" in twice.stderr
        assert parley("answer", f"runs/{RUN}", "nobody", "--results", "-", cwd=by_hand, given=lines).returncode == 2
        gone = parley("answer", f"runs/{RUN}", "mixed", "--results", "gone.json", cwd=by_hand)
        assert gone.returncode == 3
        assert "--results gone.json: cannot be read" in gone.stderr
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert f"3 jobs wait for answers from outside: parley pending runs/{RUN}" in err


@pytest.mark.timeout(60)
def test_what_waits_outlives_the_run_and_nobody_takes_answers_meanwhile(by_hand: Path) -> None:
    with running(by_hand, "recipe.yaml") as process:
        jobs = {job.job_id: job for job in wait_for(by_hand, 3)}
        tools = ExternalTools(str(by_hand / "runs" / RUN))
        assert tools.answer("mixed", right(jobs["mixed"])).accepted
        process.terminate()
        assert process.wait(60) == 130
    # It is not being made now: what waits can be read, and nobody takes an answer.
    stored = parley("pending", f"runs/{RUN}", "--json", cwd=by_hand)
    assert "read from what is stored" in stored.stderr
    assert [each["job_id"] for each in json.loads(stored.stdout)["pending"]] == ["three-pauses", "late"]
    (by_hand / "late.json").write_text(json.dumps({"call_id": jobs["late"].calls[0].call_id, "error": "nobody"}))
    before = stored_answers(by_hand)
    nobody = parley("answer", f"runs/{RUN}", "late", "--results", "late.json", cwd=by_hand)
    assert nobody.returncode == 5
    assert "nothing was stored" in nobody.stderr
    with pytest.raises(DependencyUnreachable, match="not being made any more"):
        tools.answer("late", right(jobs["late"]))
    assert stored_answers(by_hand) == before
    with running(by_hand, "recipe.yaml") as process:
        wait_for(by_hand, 2)
        assert parley("answer", f"runs/{RUN}", "2", "--results", "late.json", cwd=by_hand).returncode == 0
        with tools:  # the same ones: they find the run's new Redis
            pauses = 0
            while waiting := [job for job in tools.wait(40) if job.job_id == "three-pauses"]:
                assert tools.answer("three-pauses", right(waiting[0])).accepted
                pauses += 1
            assert (pauses, tools.is_finished) == (3, True)
        summary = summary_of(process)
    assert (summary["exit_code"], summary["ok"]) == (0, 3)
    assert records(by_hand)["late"]["tool_results"][0]["error"] == "nobody"


@pytest.mark.timeout(60)
def test_on_a_cluster_a_run_is_named_by_its_id_and_the_broker(by_hand: Path) -> None:
    with cluster(by_hand) as here, here.workers(1):
        submit = here.submit(by_hand / "recipe.yaml", by_hand / "jobs.jsonl", "--run-id", RUN)
        broker = ("--broker", here.redis.url)
        with here.redis.client() as client:
            wait = threading.Event()
            while client.hlen(f"parley:run:{RUN}:paused") < 3:
                assert submit.process.poll() is None
                wait.wait(0.05)
        while waiting := pending_of(by_hand, broker):
            for job in waiting:
                given = {call["call_id"]: PEOPLE[call["name"]](**call["arguments"]) for call in job["calls"]}
                ended = parley(
                    "answer", RUN, job["task_id"], "--results", "-", *broker, cwd=by_hand, given=json.dumps(given)
                )
                assert ended.returncode == 0, ended.stderr
                assert "1 answer taken, it goes on" in ended.stdout
        assert submit.finish()["ok"] == 3
        away = parley(
            "pending", RUN, "--results", here.results, "--broker", f"redis://127.0.0.1:{free_port()}", cwd=by_hand
        )
        assert away.returncode == 5


def pending_of(folder: Path, broker: tuple[str, str]) -> list[dict[str, Any]]:
    """What `parley pending` tells, once something waits; nothing when all is done."""
    wait = threading.Event()
    for _ in range(50):
        told: list[dict[str, Any]] = json.loads(parley("pending", RUN, "--json", *broker, cwd=folder).stdout)["pending"]
        if told or "3 ok" in parley("status", RUN, "--results", str(folder / "results"), cwd=folder).stdout:
            return told
        wait.wait(0.1)
    raise AssertionError("nothing waits, and nothing ends")


@pytest.mark.timeout(60)
def test_f39_every_way_to_answer_wrongly_has_an_error_of_its_own(by_hand: Path) -> None:
    with running(by_hand, "recipe.yaml"):
        jobs = {job.job_id: job for job in wait_for(by_hand, 3)}
        with ExternalTools(str(by_hand / "runs" / RUN)) as tools:
            with pytest.raises(NoSuchJob, match="indices go from 0 to 2"):
                tools.answer("nobody", {"c": 1})
            with pytest.raises(CallUnknown, match="asks for no call 'made up'; it waits for call_"):
                tools.answer("late", {"made up": 1})
            with pytest.raises(CallUnknown):  # swapped with another job's
                tools.answer("late", right(jobs["mixed"]))
            with pytest.raises(ResultInvalid, match="condition"):
                tools.answer("late", {jobs["late"].calls[0].call_id: {}})
            with pytest.raises(ResultInvalid, match="4,000,000 are allowed"):
                tools.answer("late", {jobs["late"].calls[0].call_id: "x" * 10_000_000})
            assert {job.job_id for job in tools.pending()} == set(jobs), "nothing of all that was taken"
            assert tools.answer("late", right(jobs["late"])).job == "resumed"
            again = tools.wait(0.0)
            assert {job.job_id for job in again} >= {"mixed", "three-pauses"}
            with pytest.raises(NotPaused, match=r"is finished|does not wait"):
                finished_answer(tools, by_hand)
            with pytest.raises(ResultInvalid, match="no results"):
                tools.answer("late", {})
    with (
        pytest.raises(DependencyUnreachable, match="nothing was stored"),
        ExternalTools(str(by_hand / "runs" / RUN)) as tools,
    ):
        tools.answer("mixed", right(jobs["mixed"]))


def finished_answer(tools: ExternalTools, folder: Path) -> None:
    """Answer a job that is done (S17), as soon as it is."""
    wait = threading.Event()
    while "late" not in records(folder):
        wait.wait(0.1)
    tools.answer("late", {"call_x": {"condition": "used"}})
