"""Bad input of every kind: the exit code, a message with place and way out, and never a traceback (decision 11)."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.cluster import PARLEY

RECIPE = """\
name: bad-input
model: {provider: offline}
conversation:
  max_turns: 5
tools:
  registry:
    - type: inline
      namespace: math
      engine: python
      tools:
        - name: add
          description: Adds two numbers.
          parameters: {type: object, properties: {a: {type: integer}}, required: [a]}
  engines:
    python: {type: lm, lm_config: {type: offline}}
"""
SECRET = "s3cr3t-canary"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a recipe and jobs that are all right."""
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    (tmp_path / "jobs.jsonl").write_text('{"prompt": "What is 1 + 1?"}\n')
    return tmp_path


def change(folder: Path, old: str, new: str) -> None:
    """Break one thing in the recipe."""
    assert old in RECIPE
    (folder / "recipe.yaml").write_text(RECIPE.replace(old, new))


def parley(
    folder: Path, *arguments: str, environment: Mapping[str, str] | None = None, stdin: bytes = b""
) -> CompletedProcess[str]:
    """Run the real command line in the folder."""
    known = {key: value for key, value in os.environ.items() if not key.startswith(("PARLEY_", "AWS_"))}
    ended = subprocess.run(
        [*PARLEY, *arguments],
        cwd=folder,
        env={**known, "PYTHONPATH": str(Path(__file__).parents[2]), **(environment or {})},
        input=stdin,
        capture_output=True,
        timeout=100,
        check=False,
    )
    return CompletedProcess(ended.args, ended.returncode, ended.stdout.decode(), ended.stderr.decode())


def check_refusal(ended: CompletedProcess[str], exit_code: int, *said: str) -> None:
    """The exit code, what must be said on stderr, and nothing that only a programmer understands."""
    assert ended.returncode == exit_code, ended.stderr
    for part in said:
        assert part in " ".join(ended.stderr.split()), ended.stderr
    assert "Traceback" not in ended.stderr
    assert SECRET not in ended.stderr + ended.stdout
    assert ended.stdout == ""


@pytest.mark.parametrize("verb", ["run", "validate"])
def test_an_unknown_key_names_its_place_and_the_nearest_known_one(folder: Path, verb: str) -> None:
    change(folder, "max_turns: 5", "max_turn: 5")
    ended = parley(folder, verb, "recipe.yaml")
    check_refusal(ended, 3, "recipe.yaml:4:3: conversation.max_turn: unknown key; did you mean 'max_turns'?")


def test_a_missing_recipe_is_named(folder: Path) -> None:
    check_refusal(parley(folder, "run", "recipes.yaml"), 3, "recipes.yaml: cannot be read: No such file")


def test_a_missing_tools_file_is_named_with_its_place_in_the_recipe(folder: Path) -> None:
    change(folder, "type: inline\n", "{type: file, path: tools.yaml, engine: python}\n    - type: inline\n")
    (folder / "recipe.yaml").write_text((folder / "recipe.yaml").read_text().replace("- {type", "- {type"))
    ended = parley(folder, "run", "recipe.yaml")
    check_refusal(ended, 3, "recipe.yaml:7:", "tools.registry[0]", "tools.yaml")


def test_an_engine_that_is_not_defined_names_those_that_are(folder: Path) -> None:
    change(folder, "engine: python", "engine: pyton")
    ended = parley(folder, "run", "recipe.yaml")
    check_refusal(ended, 3, "recipe.yaml:9:15: tools.registry[0].engine: no engine 'pyton'; did you mean 'python'?")


def test_a_module_that_is_not_there_is_named_with_what_looked_for_it(folder: Path) -> None:
    change(folder, "{type: lm, lm_config: {type: offline}}", "{type: local, module: acme_tools}")
    check_refusal(parley(folder, "run", "recipe.yaml"), 3, "recipe.yaml:15:", "acme_tools")


@pytest.mark.parametrize("verb", ["run", "validate"])
def test_a_variable_that_is_not_set_is_named_with_its_place_and_how_to_set_it(folder: Path, verb: str) -> None:
    change(folder, "{provider: offline}", '{provider: openai, model: m, api_key: "${ACME_KEY}"}')
    ended = parley(folder, verb, "recipe.yaml")
    check_refusal(ended, 3, "recipe.yaml:2:", "model.api_key: the variable ACME_KEY is not set", "set ACME_KEY")


def test_an_lm_engine_without_a_known_kind_of_model_is_named(folder: Path) -> None:
    change(folder, "{type: offline}", "{type: ofline}")
    ended = parley(folder, "run", "recipe.yaml")
    check_refusal(ended, 3, "recipe.yaml:15:", "tools.engines.python.lm_config", "'ofline'")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"prompt": "a", "tols": []}', "jobs.jsonl:2:17: unknown key 'tols'; did you mean 'tools'?"),
        (b'{"prompt": "a"', "jobs.jsonl:2:15: the JSON ends too early"),
        (b'{"prompt": "a", "seed": NaN}', "jobs.jsonl:2:25: NaN is not JSON"),
        (
            b'{"prompt": "a", "tools": ["math::ad"]}',
            "jobs.jsonl:2:27: tools: no tool 'math::ad'; did you mean 'math::add'?",
        ),
        (b'{"prompt": "a", "tool_choice": "math::ad"}', "jobs.jsonl:2:17: tool_choice: no tool 'math::ad' is offered"),
        (b'{"prompt": "Say {{ nothing }}"}', "jobs.jsonl:2:2: template 'Say {{ nothing }}': 'nothing' is undefined"),
        (b'{"id": "first", "prompt": "a"}', "jobs.jsonl:2:2: id: 'first' stands in line 1 already"),
        (b'{"prompt": "' + b"x" * (5 << 20) + b'"}', "jobs.jsonl:2:1: the line is longer than 4,194,304 bytes"),
    ],
)
def test_a_malformed_job_line_is_named_with_file_line_column(folder: Path, line: bytes, said: str) -> None:
    (folder / "jobs.jsonl").write_bytes(b'{"id": "first", "prompt": "a"}\n' + line + b"\n")
    check_refusal(parley(folder, "run", "recipe.yaml"), 3, said, "--on-bad-line skip")
    assert not list((folder / "runs").glob("*/*")), "nothing is stored of an input that is not good"


def test_a_malformed_job_line_from_stdin_is_named_too(folder: Path) -> None:
    ended = parley(folder, "run", "recipe.yaml", "--jobs", "-", stdin=b"{}\n")
    check_refusal(ended, 3, '<stdin>:1:1: a job needs either "messages" or "prompt"')


@pytest.mark.parametrize(
    ("jobs", "arguments", "said"),
    [
        (b"\n \n", ("--jobs", "jobs.jsonl"), "jobs.jsonl: no jobs in it"),
        (b"{}\n", ("--jobs", "jobs.jsonl", "--on-bad-line", "skip"), "jobs.jsonl: none of its 1 lines can run"),
        (b"", ("--jobs", "lines.jsonl"), "lines.jsonl: no such file"),
    ],
)
def test_a_run_without_jobs_is_an_error(folder: Path, jobs: bytes, arguments: tuple[str, ...], said: str) -> None:
    (folder / "jobs.jsonl").write_bytes(jobs)
    check_refusal(parley(folder, "run", "recipe.yaml", *arguments), 3, said)


def test_without_a_jobs_file_the_message_says_where_one_is_looked_for(folder: Path) -> None:
    (folder / "jobs.jsonl").unlink()
    check_refusal(parley(folder, "run", "recipe.yaml"), 2, "--jobs FILE", "jobs.jsonl")


def test_a_model_that_is_unreachable_is_noticed_before_the_first_conversation(folder: Path) -> None:
    change(folder, "{provider: offline}", "{provider: openai, model: m, base_url: 'http://127.0.0.1:9/v1'}")
    ended = parley(folder, "run", "recipe.yaml")
    check_refusal(ended, 5, "http://127.0.0.1:9/v1 is unreachable: Connection refused; start it", "parley mock-model")


def test_a_model_of_an_engine_that_is_unreachable_is_named_by_its_key(folder: Path) -> None:
    change(folder, "{type: offline}", "{type: ollama, model_id_or_path: m, url: 'http://127.0.0.1:9/v1'}")
    ended = parley(folder, "run", "recipe.yaml")
    check_refusal(ended, 5, "tools.engines.python.lm_config: the model server http://127.0.0.1:9/v1 is unreachable")


@pytest.mark.parametrize("verb", ["run", "submit"])
def test_a_broker_that_is_unreachable_is_named_without_its_password(folder: Path, verb: str) -> None:
    broker = f"redis://:{SECRET}@127.0.0.1:9/0"
    ended = parley(folder, verb, "recipe.yaml", "--results", "out", "--broker", broker)
    assert ended.returncode == 5
    assert "broker redis://127.0.0.1:9/0 is unreachable" in ended.stderr
    assert "PARLEY_BROKER" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert SECRET not in ended.stderr + ended.stdout


def test_submit_without_a_broker_says_how_to_name_one(folder: Path) -> None:
    ended = parley(folder, "submit", "recipe.yaml", "--results", "out")
    check_refusal(ended, 2, "--broker", "PARLEY_BROKER")


def test_a_store_that_cannot_be_written_is_noticed_before_anything_runs(folder: Path) -> None:
    (folder / "full").write_text("a file where a folder is needed")
    ended = parley(folder, "run", "recipe.yaml", "--results", "full")
    check_refusal(ended, 5, "full", "move it away, or choose another results URL")


def test_a_store_of_an_unknown_kind_names_the_known_ones(folder: Path) -> None:
    check_refusal(parley(folder, "run", "recipe.yaml", "--results", "ftp://x/y"), 5, "no store for ftp://", "s3://")


def test_sec_s15_a_run_id_that_could_leave_its_folder_is_refused(folder: Path) -> None:
    for run_id in ("../x", "a/b", "..", "ü", "x" * 129, ""):
        check_refusal(parley(folder, "run", "recipe.yaml", "--run-id", run_id), 2, "--run-id", "1 to 128 letters")


@pytest.mark.parametrize("verb", ["status", "show", "export"])
def test_a_run_that_is_not_there_is_named_with_where_it_was_looked_for(folder: Path, verb: str) -> None:
    check_refusal(parley(folder, verb, "nope"), 2, "no run 'nope' in", "/runs", "--results URL")
    check_refusal(parley(folder, verb, "../up"), 2, "no run 'up' in")
    check_refusal(parley(folder, verb, "a/..", "--results", "out"), 2, "no run 'a/..' in")


def test_a_second_recipe_under_the_same_run_id_is_a_conflict_that_says_what_differs(folder: Path) -> None:
    assert parley(folder, "run", "recipe.yaml", "--run-id", "r1").returncode == 0
    before = {path: path.read_bytes() for path in (folder / "runs/r1/input").iterdir()}
    changed = '{"prompt": "What is 2 + 2?"}\n'
    (folder / "jobs.jsonl").write_text(changed)
    check_refusal(parley(folder, "run", "recipe.yaml", "--run-id", "r1", "--jobs", "jobs.jsonl"), 3, "jobs", "--run-id")
    change(folder, "max_turns: 5", "max_turns: 6")
    check_refusal(parley(folder, "run", "recipe.yaml", "--run-id", "r1"), 3, "another recipe", "--run-id")
    check_refusal(parley(folder, "run", "recipe.yaml", "--run-id", "r1", "--resume"), 3, "another recipe", "--run-id")
    assert {path: path.read_bytes() for path in (folder / "runs/r1/input").iterdir()} == before


def test_workers_that_cannot_start_end_the_run_with_the_end_of_their_log(folder: Path) -> None:
    ended = parley(folder, "run", "recipe.yaml", environment={"PARLEY_LEASE_SECONDS": "soon"})
    assert ended.returncode == 1
    assert "worker 1 died 4 times right after its start" in ended.stderr
    assert "lease_seconds" in ended.stderr
    assert "worker-1.log" in ended.stderr


def test_bad_lines_are_left_out_on_request_and_recorded(folder: Path) -> None:
    (folder / "jobs.jsonl").write_bytes(b'{"prompt": "a"}\n{"promt": "b"}\nnonsense\n{"prompt": "c"}\n')
    ended = parley(
        folder, "run", "recipe.yaml", "--on-bad-line", "skip", "--run-id", "r1", "--jobs", "jobs.jsonl", "--json"
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["jobs"] == 2
    assert "2 bad job lines left out" in ended.stderr
    lines = [json.loads(line) for line in (folder / "runs/r1/input/bad-lines.jsonl").read_text().splitlines()]
    assert [(line["line"], line["column"]) for line in lines] == [(2, 2), (3, 1)]
    assert json.loads((folder / "runs/r1/manifest.json").read_text())["bad_lines"] == 2


def test_validate_names_every_bad_line_and_says_what_it_found(folder: Path) -> None:
    (folder / "jobs.jsonl").write_bytes(b'{"prompt": "a"}\n{"promt": "b"}\nnonsense\n')
    ended = parley(folder, "validate", "recipe.yaml")
    assert ended.returncode == 3
    assert "jobs.jsonl:2:2: unknown key 'promt'" in ended.stderr
    assert "jobs.jsonl:3:1: not a JSON object" in ended.stderr
    assert "2 of its 3 lines cannot run" in ended.stderr
    assert "math: 1, engine python" in ended.stdout


def test_sec_s18_what_a_job_line_says_cannot_steer_the_terminal(folder: Path) -> None:
    (folder / "jobs.jsonl").write_text(json.dumps({"prompt": "a", "\x1b[2Jkey\u202e": 1}) + "\n")
    ended = parley(folder, "run", "recipe.yaml")
    assert ended.returncode == 3
    assert "\x1b" not in ended.stderr
    assert "\u202e" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--resume",), "--resume takes --run-id and no --jobs"),
        (("--resume", "--run-id", "r1", "--jobs", "jobs.jsonl"), "--resume takes --run-id and no --jobs"),
        (("--resume", "--run-id", "r1"), "--resume: no run r1 in"),
    ],
)
def test_resuming_what_is_not_stored_is_a_usage_error(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    check_refusal(parley(folder, "run", "recipe.yaml", *arguments), 2, said)
