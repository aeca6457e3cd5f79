"""The run that a fork makes: an ordinary one, in the store of its parent, the same for the same command."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conversations.errors import RecipeInvalid
from conversations.messages import assistant
from conversations.recipe_files import recipe_from_json
from jobs.errors import RunConflict
from jobs.run import read_recipe
from producer.errors import InputInvalid, UsageInvalid
from producer.forked_run import ForkRequest, submit_fork
from producer.run_address import FoundRun, find_run
from producer.stored_lines import StoredLines
from producer.submission import Submission
from tests.support.scripted_model import calls
from tests.unit.producer.made_runs import RECIPE, MadeRun

ADD = calls(("a", "w__add", {"a": 1, "b": 2}))
ECHO = calls(("e", "w__echo", {"text": "x"}))


@pytest.fixture
def made(tmp_path: Path) -> MadeRun:
    return MadeRun(tmp_path, jobs=[{"prompt": "hi"}, {"prompt": "you", "metadata": {"lot": 7}}])


def request(turn: int = 1, **changes: Any) -> ForkRequest:
    return replace(ForkRequest(turn, 3, None, None, Path(), is_local=True), **changes)


def found(submission: Submission) -> FoundRun:
    return find_run(submission.manifest.run_id, submission.results_url)


def model_of(submission: Submission) -> dict[str, Any]:
    return recipe_from_json(read_recipe(submission.store, submission.manifest)).model


async def test_e17_forks_are_jobs_whose_metadata_name_their_parent(made: MadeRun) -> None:
    record = await made.play(ADD, ECHO, assistant("done"), index=1)
    submission = submit_fork(made.found, record, request())
    assert submission.manifest.jobs == 3
    assert submission.results_url == made.found.store.url
    lines = [StoredLines(found(submission)).of(index) for index in range(3)]
    assert [line.metadata for line in lines] == [
        {
            "lot": 7,
            "fork": {"run": "r1", "job": "job-1", "index": 1, "turn": 1, "messages": 4, "number": number},
        }
        for number in range(3)
    ]
    assert all(list(line.messages or ()) == record["messages"][:4] for line in lines)
    assert {line.seed for line in lines} == {record["seed"]}, "the same tools are drawn, the same user is played"
    assert len({line.history.seed for line in lines if line.history}) == 3, "and the models say something else"


async def test_the_same_fork_is_the_same_run_and_another_is_another(made: MadeRun) -> None:
    first, second = await made.play(ADD, assistant("done")), await made.play(ECHO, assistant("done"), index=1)
    again = submit_fork(made.found, first, request())
    assert submit_fork(made.found, first, request()).manifest == again.manifest
    others = [
        submit_fork(made.found, first, request(turn=0)),
        submit_fork(made.found, first, request(count=2)),
        submit_fork(made.found, first, request(model="other")),
        submit_fork(made.found, second, request()),
    ]
    run_ids = {submission.manifest.run_id for submission in [again, *others]}
    assert len(run_ids) == 5
    assert all(run_id.startswith("r1-fork-") for run_id in run_ids)


async def test_a_named_fork_is_attached_to_when_equal_and_a_conflict_otherwise(made: MadeRun) -> None:
    record = await made.play(ADD, assistant("done"))
    first = submit_fork(made.found, record, request(run_id="mine"))
    assert submit_fork(made.found, record, request(run_id="mine")).manifest == first.manifest
    with pytest.raises(RunConflict, match="mine already exists"):
        submit_fork(made.found, record, request(run_id="mine", count=1))
    with pytest.raises(UsageInvalid, match="--run-id"):
        submit_fork(made.found, record, request(run_id="a/b"))


async def test_the_recipe_is_the_parents(made: MadeRun, tmp_path: Path) -> None:
    record = await made.play(ADD, assistant("done"))
    (tmp_path / "recipe.yaml").unlink()
    submission = submit_fork(made.found, record, request())
    assert submission.manifest.recipe_digest == made.found.manifest.recipe_digest


async def test_another_model_by_its_name_keeps_the_rest_of_the_block(made: MadeRun) -> None:
    record = await made.play(ADD, assistant("done"))
    assert model_of(submit_fork(made.found, record, request(model="qwen3"))) == {
        "provider": "offline",
        "model": "qwen3",
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.yaml", "provider: offline\nmodel: other\nmax_tokens: 9\n"),
        ("m.yml", "model: {provider: offline, model: other, max_tokens: 9}\nseed: 4\n"),
        ("m.toml", 'provider = "offline"\nmodel = "other"\nmax_tokens = 9\n'),
        ("m.json", '{"provider": "offline", "model": "other", "max_tokens": 9}'),
    ],
)
async def test_another_model_by_a_file(made: MadeRun, tmp_path: Path, name: str, text: str) -> None:
    record = await made.play(ADD, assistant("done"))
    (tmp_path / name).write_text(text)
    submission = submit_fork(made.found, record, request(model=str(tmp_path / name)))
    assert model_of(submission) == {"provider": "offline", "model": "other", "max_tokens": 9}
    assert [str(model) for model in submission.checked.models] == ["model: other (offline, no network)"]


async def test_a_model_that_cannot_be_used_is_told_before_anything_is_written(made: MadeRun, tmp_path: Path) -> None:
    record = await made.play(ADD, assistant("done"))
    file = tmp_path / "m.yaml"

    def refused(text: str, error: type[Exception], match: str) -> None:
        file.write_text(text)
        with pytest.raises(error, match=match):
            submit_fork(made.found, record, request(model=str(file)))

    refused("provider: offline\ntemprature: 1\n", UsageInvalid, r"--model .*model\.temprature: ")
    refused("provider: offline\nmodel: m\napi_key: ${not ok}\n", RecipeInvalid, "m.yaml:3:")
    refused("- a\n", RecipeInvalid, "a recipe is a mapping")
    refused("model: {}\n", RecipeInvalid, "holds no model block")
    with pytest.raises(InputInvalid, match="cannot be read: No such file"):
        submit_fork(made.found, record, request(model=str(tmp_path / "none.yaml")))
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["r1"]


async def test_a_name_says_nothing_where_the_model_is_one_of_several(tmp_path: Path) -> None:
    routes = "model: {routes: [{provider: offline, weight: 1}, {provider: offline, model: b, weight: 2}]}"
    made = MadeRun(tmp_path, RECIPE.replace("model: {provider: offline, model: first}", routes))
    record = await made.play(ADD, assistant("done"))
    with pytest.raises(UsageInvalid, match="one of several routes; name a file"):
        submit_fork(made.found, record, request(model="b"))


async def test_a_turn_with_nothing_behind_it_is_refused(made: MadeRun) -> None:
    record = await made.play(ADD, assistant("done"))
    with pytest.raises(UsageInvalid, match="--turn 2: nothing is left to go on with after that turn: it ended there"):
        submit_fork(made.found, record, request(turn=2))
    with pytest.raises(UsageInvalid, match="has 2 model turns"):
        submit_fork(made.found, record, request(turn=3))


async def test_s10_a_conversation_that_used_its_turns_up_cannot_go_on(made: MadeRun) -> None:
    record = await made.play(*(calls((str(n), "w__echo", {"text": str(n)})) for n in range(5)))
    with pytest.raises(UsageInvalid, match="no final answer after 5 turns"):
        submit_fork(made.found, record, request(turn=5))
    assert submit_fork(made.found, record, request(turn=4)).manifest.jobs == 3


async def test_a_conversation_that_broke_off_goes_on_from_its_end(made: MadeRun) -> None:
    record = await made.play(ADD, assistant("done"))
    away = {"status": "failed", "error": {"type": "model_unavailable", "message": "away"}}
    cut = record | away | {"messages": record["messages"][:4]}
    submission = submit_fork(made.found, cut, request(turn=1))
    assert len(StoredLines(found(submission)).of(0).messages or ()) == 4


async def test_a_fork_of_a_fork(made: MadeRun) -> None:
    record = await made.play(ADD, ECHO, assistant("done"))
    first = submit_fork(made.found, record, request(turn=1))
    played = record | {"run_id": first.manifest.run_id, "job_id": "f", "index": 2}
    second = submit_fork(found(first), played, request(turn=2))
    line = StoredLines(found(second)).of(0)
    assert line.history is not None
    assert (line.history.turns, line.metadata["fork"]["run"]) == (2, first.manifest.run_id)
    assert [result.call_id for result in line.history.tool_results] == ["a", "e"]
