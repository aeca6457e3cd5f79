"""Sessions on a REST backend that outlive whoever began them: with dying workers none is left and none is too many."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos.test_permits import holders_of_permits
from tests.support.cluster import Cluster, Supervisor, check_one_ok_record_each, cluster, mock_model, write_recipe
from tests.support.note_backend import NoteBackend, note_backend

JOBS, PERMITS, QUEUES = 16, 2, "conversations,ns.desk"

RECIPE = """
name: notes
model: {{provider: openai, model: mock, base_url: "{model}", api_key: none}}
tools:
  registry:
    - type: inline
      namespace: desk
      engine: desks
      tools:
        - name: take_note
          description: Writes a note into the session of this conversation.
          parameters: {{type: object, properties: {{note: {{type: string}}}}, required: [note]}}
          metadata: {{rest_method: POST, rest_path: /notes, rest_param_locations: {{note: body}}}}
  engines:
    desks:
      type: rest
      url: "{backend}"
      sessions:
        desk:
          setup: {{method: POST, path: "/sessions/{{{{ session_id }}}}"}}
          send: {{header: {{X-Session: "{sent}"}}}}
          teardown: {{method: DELETE, path: "/sessions/{{{{ session_id }}}}"}}
          resume: {resume}
          lost_statuses: [410]
  namespaces:
    desk: {{stateful: true, max_concurrency: {permits}}}
"""


@pytest.fixture
def backend() -> Iterator[NoteBackend]:
    with note_backend() as serving:
        yield serving


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path) as running:
        yield running


def notes_run(folder: Path, model: str, backend: NoteBackend, resume: str = "replay") -> tuple[Path, Path]:
    text = RECIPE.format(model=model, backend=backend.url, sent="{{ session_id }}", resume=resume, permits=PERMITS)
    return write_recipe(folder, text, [{"prompt": f"Note {number}."} for number in range(JOBS)])


def kill_holders(here: Cluster, workers: Supervisor, count: int, still_runs: Callable[[], bool]) -> None:
    """Kill (-9) a worker that holds a permit, that many times."""
    wait, killed = threading.Event(), 0
    while killed < count:
        holders = holders_of_permits(here)
        for worker in workers.workers:
            if any(f"-{worker.process.pid}-" in holder for holder in holders):
                worker.kill()
                killed += 1
                break
        wait.wait(0.2)
        assert still_runs(), "the run ended before its holders were killed"


def check_nothing_left(here: Cluster, backend: NoteBackend, run_id: str) -> None:
    """No session on the backend, none in the ledger, and never more than there were permits."""
    with here.redis.client() as client:
        wait = threading.Event()
        while backend.open and not wait.wait(0.1):
            pass  # the test's own time limit ends a wait in vain
        assert backend.most <= PERMITS
        while client.zcard("parley:sessions") and not wait.wait(0.1):
            pass
        assert client.zcard(f"parley:run:{run_id}:left") == 0
        assert client.keys(f"parley:run:{run_id}:session:*") == []
    here.check_nothing_held(run_id, ["desk"])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("resume", ["replay", "reuse"])
def test_f3_a_killed_holders_session_is_ended_or_taken_up_and_the_limit_always_holds(
    here: Cluster, backend: NoteBackend, tmp_path: Path, resume: str
) -> None:
    with (
        mock_model(tmp_path, latency_ms=100, turns=4) as model,
        here.workers(3, queues=QUEUES, concurrency=20) as workers,
    ):
        submit = here.submit(*notes_run(tmp_path, model.url, backend, resume))
        kill_holders(here, workers, 2, lambda: submit.process.poll() is None)
        summary = submit.finish()
        assert (summary["exit_code"], summary["ok"]) == (0, JOBS), summary
        check_nothing_left(here, backend, summary["run_id"])
    records = here.records(summary["run_id"])
    check_one_ok_record_each(records, JOBS)
    assert backend.strangers == 0, "no call was made in a session that was not there"
    again = sum(record["attempt"] - 1 for record in records)
    assert again >= 2
    if resume == "replay":
        assert backend.opened > JOBS, "each attempt that got so far had a session of its own"


@pytest.mark.timeout(300)
def test_f37_sessions_whose_teardown_fails_are_in_the_records_and_the_reaper_ends_them(
    here: Cluster, backend: NoteBackend, tmp_path: Path
) -> None:
    backend.refusals = 4  # three at the end of the conversation, one more from the reaper
    with mock_model(tmp_path, latency_ms=5, turns=2) as model, here.workers(2, queues=QUEUES, concurrency=20):
        summary = here.submit(*notes_run(tmp_path, model.url, backend)).finish()
        assert summary["ok"] == JOBS
        check_nothing_left(here, backend, summary["run_id"])
    assert set(backend.refused.values()) == {4}
    for record in here.records(summary["run_id"]):
        assert record["metadata"]["teardown"].startswith("failed: ToolFailed: no teardown for 'desk'")
