"""The verbs that look at a run, and those that need none: status, show, export, validate, mock-model."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import redis

from producer.cli import VERBS
from tests.support.cluster import PARLEY, check_calls_are_answered

ROOT = Path(__file__).resolve().parents[2]
RECIPE = """
name: verbs
model: {provider: offline}
limits: {max_attempts: 1}
tools:
  registry:
    - type: inline
      namespace: shop
      engine: simulated
      tools:
        - name: price
          description: The price of a thing.
          parameters: {type: object, properties: {thing: {type: string}}, required: [thing]}
          output_parameters: {type: object, properties: {euros: {type: number}}, required: [euros]}
    - type: inline
      namespace: till
      engine: simulated
      tools:
        - name: pay
          description: Pays.
          parameters: {type: object, properties: {euros: {type: number}}, required: [euros]}
  engines:
    simulated: {type: lm, lm_config: {type: offline}}
  namespaces:
    till: {stateful: true, max_concurrency: 2}
"""
JOBS = [
    {"id": "first", "prompt": "What does a kettle cost?", "tools": ["shop::price"], "metadata": {"lot": 7}},
    {"prompt": "\x1b[2JPay for it.", "tools": ["till::*"]},
    {"id": "short", "prompt": "What does a pot cost?", "tools": ["shop::*"], "tool_choice": "required", "max_turns": 1},
]


def parley(*arguments: str, cwd: Path, **options: Any) -> CompletedProcess[str]:
    return subprocess.run(
        [*PARLEY, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        **options,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run: two conversations that are ok and one that failed."""
    folder = tmp_path_factory.mktemp("verbs")
    (folder / "recipe.yaml").write_text(RECIPE)
    (folder / "jobs.jsonl").write_text("".join(json.dumps(job) + "\n" for job in JOBS))
    ended = parley("run", "recipe.yaml", "--run-id", "r1", cwd=folder)
    assert ended.returncode == 4, ended.stderr
    return folder / "runs" / "r1"


def test_status_says_the_same_as_the_run_did(run: Path) -> None:
    ended = parley("status", str(run), "--json", cwd=run)
    assert ended.returncode == 0
    summary = json.loads(ended.stdout.splitlines()[-1])
    assert {key: summary[key] for key in ("run_id", "jobs", "ok", "failed", "cancelled", "dead", "pending")} == {
        "run_id": "r1", "jobs": 3, "ok": 2, "failed": 1, "cancelled": 0, "dead": 0, "pending": 0,
    }  # fmt: skip
    assert summary["results"] == run.parent.as_uri()
    assert summary["seconds"] > 0
    assert "3 jobs: 2 ok, 1 failed" in parley("status", str(run), cwd=run).stdout


@pytest.mark.parametrize(
    "address",
    [("r1", "--results", "runs"), ("runs/r1",), ("runs/r1/",), ("r1",), ("./runs/../runs/r1",)],
)
def test_a_run_is_named_by_its_folder_or_by_its_id_and_store(run: Path, address: tuple[str, ...]) -> None:
    ended = parley("status", *address, "--json", cwd=run.parent.parent)
    assert json.loads(ended.stdout)["run_id"] == "r1", ended.stderr


def test_a_run_is_named_by_its_url(run: Path) -> None:
    assert json.loads(parley("status", run.as_uri(), "--json", cwd=run).stdout)["jobs"] == 3


def test_status_with_a_broker_that_does_not_know_the_run_counts_what_is_stored(
    run: Path, shared_redis_url: str
) -> None:
    ended = parley("status", str(run), "--broker", shared_redis_url, "--json", cwd=run)
    assert json.loads(ended.stdout)["ok"] == 2
    assert "counted from what is stored" in ended.stderr


def test_f37_status_says_how_many_jobs_left_sessions_on_their_backends(run: Path, shared_redis_url: str) -> None:
    with redis.Redis.from_url(shared_redis_url) as client:
        client.hset("parley:run:r1", mapping={"jobs": 3, "ok": 2, "failed": 1})
        client.zadd("parley:run:r1:left", {"0": 1, "2": 1})
        ended = parley("status", str(run), "--broker", shared_redis_url, cwd=run)
        client.delete("parley:run:r1", "parley:run:r1:left")
    assert "2 jobs left sessions on their backends" in ended.stdout + ended.stderr


def test_show_prints_a_conversation_as_people_read_it(run: Path) -> None:
    ended = parley("show", str(run), "0", cwd=run)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("r1 #0 first: ok, offline, ")
    assert "user" in lines
    assert "  What does a kettle cost?" in lines
    assert any(line.startswith("  → shop__price({") for line in lines)
    assert "tool shop::price" in lines
    assert "assistant" in lines


def test_show_finds_a_job_by_its_id(run: Path) -> None:
    assert parley("show", str(run), "first", cwd=run).stdout == parley("show", str(run), "0", cwd=run).stdout


def test_show_names_the_error_of_a_failed_conversation(run: Path) -> None:
    assert "\nerror: max_turns: " in parley("show", str(run), "short", cwd=run).stdout


def test_show_json_is_the_record_itself(run: Path) -> None:
    record = json.loads(parley("show", str(run), "first", "--json", cwd=run).stdout)
    assert set(record) == {
        "run_id", "job_id", "index", "attempt", "status", "messages", "tools", "tool_results", "usage", "model",
        "error", "seed", "started_at", "finished_at", "metadata",
    }  # fmt: skip
    assert record["metadata"] == {"lot": 7}


def test_sec_s18_a_conversation_cannot_steer_the_terminal(run: Path) -> None:
    shown = parley("show", str(run), "1", cwd=run).stdout
    assert "\x1b" not in shown
    assert r"\x1b[2JPay for it." in shown


def test_a_job_that_has_no_record_is_named_with_the_indices_there_are(run: Path) -> None:
    ended = parley("show", str(run), "99", cwd=run)
    assert ended.returncode == 2
    assert "no record of job '99'" in ended.stderr
    assert "from 0 to 2" in ended.stderr


def test_export_writes_training_lines_of_what_ended_ok(run: Path) -> None:
    ended = parley("export", str(run), cwd=run)
    assert ended.returncode == 0
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(lines) == 2
    for line in lines:
        assert set(line) == {"messages", "tools"}
        check_calls_are_answered(line["messages"])
    assert "2 conversations written" in ended.stderr


def test_export_into_a_file_leaves_it_whole_or_not_there(run: Path, tmp_path: Path) -> None:
    ended = parley("export", str(run), "--format", "openai", "--output", "out.jsonl", cwd=tmp_path)
    assert ended.returncode == 0
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    refused = parley("export", str(run), "--output", "missing/out.jsonl", cwd=tmp_path)
    assert refused.returncode == 2
    assert "missing/out.jsonl" in refused.stderr


def test_export_names_the_formats_there_are(run: Path) -> None:
    ended = parley("export", str(run), "--format", "csv", cwd=run)
    assert ended.returncode == 2
    assert "openai" in ended.stderr


def test_export_into_a_closed_pipe_ends_quietly(run: Path) -> None:
    command = f"{sys.executable} -c 'from producer.cli import main; main()' export {run} | true"
    ended = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in ended.stderr


def test_validate_says_what_it_found(run: Path) -> None:
    folder = run.parent.parent
    ended = parley("validate", "recipe.yaml", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    for line in (
        "recipe.yaml: ok",
        "  model      model: offline (offline, no network)",
        "  tools      shop: 1, engine simulated",
        "  tools      till: 1, engine simulated, stateful, at most 2 conversations at once",
        "  jobs       3 in jobs.jsonl",
        "  queue      conversations: 2 jobs",
        "  queue      ns.till: 1 jobs",
    ):
        assert line in ended.stdout.splitlines()
    found = json.loads(parley("validate", "recipe.yaml", "--json", cwd=folder).stdout)
    assert found["jobs"] == 3
    assert found["queues"] == {"conversations": 2, "ns.till": 1}
    assert found["tools"]["till"] == {"tools": ["pay"], "engine": "simulated", "stateful": True}


def test_validate_stores_and_starts_nothing(run: Path, tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text((run.parent.parent / "recipe.yaml").read_text())
    assert parley("validate", "recipe.yaml", cwd=tmp_path).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.yaml"]


def test_help_lists_every_verb_and_the_exit_codes(tmp_path: Path) -> None:
    ended = parley("--help", cwd=tmp_path)
    assert ended.returncode == 0
    for verb in VERBS:
        assert verb in ended.stdout
    assert "130 interrupted" in " ".join(ended.stdout.split())


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_its_options(verb: str, tmp_path: Path) -> None:
    ended = parley(verb, "--help", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert f"parley {verb}" in ended.stdout.replace("-c", "parley", 1)


def test_a_mistyped_verb_is_a_usage_error_with_the_nearest_one(tmp_path: Path) -> None:
    ended = parley("stauts", cwd=tmp_path)
    assert ended.returncode == 2
    assert "'status'" in ended.stderr


def test_help_loads_nothing_that_is_slow() -> None:
    script = (
        "import sys; sys.argv = ['parley', '--help']\n"
        "from producer.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "slow = {'pydantic', 'celery', 'kombu', 'redis', 'orjson', 'obstore', 'jsonschema_rs', 'jinja2', 'structlog'}\n"
        "print('loaded:', *sorted(slow & set(sys.modules)))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "loaded:"


def test_mock_model_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*PARLEY, "mock-model", "--port", "0", "--turns", "2", "--rate-500", "0"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        with urllib.request.urlopen(f"{url}/models", timeout=20) as answer:
            assert json.loads(answer.read())["object"] == "list"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert err == "stopped\n"


def test_mock_model_on_a_port_that_is_taken_says_so(tmp_path: Path, shared_redis_url: str) -> None:
    port = shared_redis_url.rpartition(":")[2].partition("/")[0]
    ended = parley("mock-model", "--port", port, cwd=tmp_path)
    assert ended.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in ended.stderr
    assert "--port" in ended.stderr


def test_the_version_is_said_without_a_verb(tmp_path: Path) -> None:
    outcome = parley("--version", cwd=tmp_path)
    assert (outcome.returncode, outcome.stdout.split()[0]) == (0, "parley")
