"""`parley fork` and `parley replay`: from a finished conversation to several others, to pairs, and back to itself."""

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import orjson
import pytest

from results.reading import visible_records
from results.store import open_store
from tests.support.cluster import PARLEY, Cluster, check_calls_are_answered, cluster, mock_model

ROOT = Path(__file__).resolve().parents[2]
RECIPE = """
name: forked
seed: 3
model: {provider: offline}
conversation: {system: "You know prices.", max_turns: 6}
checks: [{type: length, max_turns: 2}]
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
        - name: stock
          description: How many there are.
          parameters: {type: object, properties: {thing: {type: string}}, required: [thing]}
  engines:
    simulated: {type: lm, lm_config: {type: offline}}
"""
JOBS = [
    {"id": f"job-{number}", "prompt": f"What does kettle {number} cost?", "tool_choice": "required"}
    for number in range(6)
]
FORKS = 8


def parley(*arguments: str, cwd: Path, **environment: str) -> CompletedProcess[str]:
    return subprocess.run(
        [*PARLEY, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def records(results: str, run_id: str) -> list[dict[str, Any]]:
    return sorted(visible_records(open_store(results), run_id), key=lambda record: int(record["index"]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of its own folder."""
    folder = tmp_path_factory.mktemp("forks")
    (folder / "recipe.yaml").write_text(RECIPE)
    (folder / "jobs.jsonl").write_bytes(b"".join(orjson.dumps(job) + b"\n" for job in JOBS))
    ended = parley("run", "recipe.yaml", "--run-id", "r1", cwd=folder)
    assert ended.returncode in {0, 4}, ended.stderr
    return folder


@pytest.fixture(scope="module")
def forked(folder: Path) -> dict[str, Any]:
    """The summary of a fork."""
    ended = parley("fork", "runs/r1", "job-2", "--turn", "1", "--n", str(FORKS), "--json", cwd=folder)
    assert ended.returncode in {0, 4}, ended.stderr
    summary: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return summary


def test_a_conversation_goes_on_in_several_ways(folder: Path, forked: dict[str, Any]) -> None:
    parent = records(str(folder / "runs"), "r1")[2]
    assert (forked["jobs"], forked["pending"]) == (FORKS, 0)
    made = records(str(folder / "runs"), forked["run_id"])
    kept = made[0]["metadata"]["fork"]["messages"]
    assert kept < len(parent["messages"])
    assert all(record["messages"][:kept] == parent["messages"][:kept] for record in made)
    assert all(record["tools"] == parent["tools"] for record in made)
    assert len({orjson.dumps(record["messages"][kept:]) for record in made}) > 1, "they do not all say the same"
    assert [record["metadata"]["fork"]["number"] for record in made] == list(range(FORKS))
    for record in made:
        check_calls_are_answered(record["messages"])


def test_the_same_fork_again_does_nothing(folder: Path, forked: dict[str, Any]) -> None:
    again = parley("fork", "r1", "2", "--turn", "1", "-n", str(FORKS), "--results", "runs", "--json", cwd=folder)
    assert f"run {forked['run_id']} is complete already" in again.stderr
    assert json.loads(again.stdout)["usage"] == forked["usage"]


def test_forks_become_preference_pairs(folder: Path, forked: dict[str, Any]) -> None:
    ended = parley("export", f"runs/{forked['run_id']}", "--format", "preference", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    pairs = [json.loads(line) for line in ended.stdout.splitlines()]
    assert pairs, "some ended in time and some did not"
    assert f"{len(pairs)} pairs written" in ended.stderr
    for pair in pairs:
        assert pair.keys() == {"prompt", "chosen", "rejected", "tools"}
        assert pair["prompt"][-1]["role"] == "tool"
        assert pair["chosen"] != pair["rejected"]


def test_every_conversation_is_replayed_to_the_same_end(folder: Path, forked: dict[str, Any]) -> None:
    for run_id, jobs in (("r1", len(JOBS)), (forked["run_id"], FORKS)):
        ended = parley("replay", f"runs/{run_id}", "--json", cwd=folder)
        assert ended.returncode == 0, ended.stdout
        assert json.loads(ended.stdout) == {
            "run_id": run_id, "replayed": jobs, "same": jobs, "empty": 0, "differing": [],
        }  # fmt: skip


def test_a_replay_needs_neither_the_models_server_nor_its_key(tmp_path: Path) -> None:
    with mock_model(tmp_path, latency_ms=1, turns=3) as model:
        block = f"{{provider: openai, model: m, base_url: '{model.url}', api_key: '${{A_TEST_KEY}}'}}"
        (tmp_path / "recipe.yaml").write_text(RECIPE.replace("{provider: offline}", block))
        (tmp_path / "jobs.jsonl").write_bytes(orjson.dumps(JOBS[0]))
        made = parley("run", "recipe.yaml", "--run-id", "r2", cwd=tmp_path, A_TEST_KEY="a key")
        assert made.returncode == 4, made.stderr
    ended = parley("replay", "runs/r2", "job-0", cwd=tmp_path)
    assert (ended.returncode, ended.stdout.strip()) == (0, "run r2: 1 the same, 0 differ"), ended.stderr
    without_key = parley("fork", "runs/r2", "0", "--turn", "0", cwd=tmp_path)
    assert without_key.returncode == 3
    assert "the variable A_TEST_KEY is not set" in without_key.stderr
    without_server = parley("fork", "runs/r2", "0", "--turn", "0", cwd=tmp_path, A_TEST_KEY="a key")
    assert without_server.returncode == 5
    assert f"the model server {model.url} is unreachable" in without_server.stderr


def test_a_difference_is_shown_with_its_place(folder: Path) -> None:
    run_id = "changed"
    record = records(str(folder / "runs"), "r1")[0]
    source, target = folder / "runs" / "r1", folder / "runs" / run_id
    assert parley("run", "recipe.yaml", "--run-id", run_id, cwd=folder).returncode in {0, 4}
    recipe = json.loads((source / "recipe.json").read_text())
    recipe["recipe"]["conversation"]["system"] = "You know nothing."
    data = orjson.dumps(recipe)
    (target / "recipe.json").write_bytes(data)
    ended = parley("replay", f"runs/{run_id}", "0", cwd=folder)
    assert ended.returncode == 3, "a recipe that was changed is no recipe"
    manifest = json.loads((target / "manifest.json").read_text())
    manifest["recipe_digest"] = hashlib.sha256(data).hexdigest()
    (target / "manifest.json").write_text(json.dumps(manifest))
    ended = parley("replay", f"runs/{run_id}", "0", cwd=folder)
    assert ended.returncode == 4
    assert f"{run_id} #0 {record['job_id']}: differs in 1 place\n  messages[0].content\n" in ended.stdout
    assert '    recorded: "You know prices."\n    replayed: "You know nothing."\n' in ended.stdout
    assert f"run {run_id}: 0 the same, 1 differ" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("fork", "runs/r1", "0"), 2, "--turn"),
        (("fork", "runs/r1", "0", "--turn", "99"), 2, "model turns; use 0"),
        (("fork", "runs/r1", "nobody", "--turn", "0"), 2, "no record of job 'nobody'"),
        (("fork", "runs/none", "0", "--turn", "0"), 2, "no run 'none'"),
        (("fork", "runs/r1", "0", "--turn", "0", "--n", "0"), 2, "--n"),
        (("fork", "runs/r1", "0", "--turn", "0", "--model", "gone.yaml"), 3, "gone.yaml: cannot be read"),
        (("fork", "runs/r1", "0", "--turn", "0", "--broker", "redis://127.0.0.1:1/0"), 5, "127.0.0.1:1"),
        (("replay", "runs/r1", "nobody"), 2, "no record of job 'nobody'"),
    ],
)
def test_what_cannot_be_done_is_said(folder: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    ended = parley(*arguments, cwd=folder)
    assert ended.returncode == code, ended.stderr
    assert said in re.sub(r"\s+", " ", ended.stderr)
    assert "Traceback" not in ended.stderr


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path) as running:
        yield running


def test_a_fork_is_fed_to_a_cluster(here: Cluster, folder: Path) -> None:
    with here.workers(1):
        ended = parley(
            "fork", "runs/r1", "1", "--turn", "1", "--n", "5", "--model", "other-model", "--broker", here.redis.url,
            "--json", cwd=folder,
        )  # fmt: skip
    assert ended.returncode in {0, 4}, ended.stderr
    summary = json.loads(ended.stdout.splitlines()[-1])
    made = records(str(folder / "runs"), summary["run_id"])
    assert (len(made), {record["model"] for record in made}) == (5, {"other-model"})
