"""A forked run: one conversation of another run gone on with several times, as a run like any other."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from conversations.roles import RoleTools
from conversations.state import State
from conversations.steps import Finish, next_step
from engines.chance import derive_seed
from jobs.beginning import beginning
from jobs.job import JobLine
from jobs.run import InputWriter, create_run, is_run_id
from producer.checked_recipe import CheckedRecipe
from producer.errors import UsageInvalid
from producer.fork_point import forked_line
from producer.run_address import FoundRun
from producer.stored_lines import StoredLines
from producer.stored_recipe import check_stored_recipe
from producer.submission import Submission, unusable_run_id
from results.exports.preference import FORK
from results.manifest import RunManifest, read_manifest

JSONObject = dict[str, Any]
_DIGEST_CHARACTERS = 8
_LONGEST_NAME = 100
_SEED_RANGE = 2**53


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """What the command line says; `is_local` when the workers run here, with this environment."""

    turn: int
    count: int
    model: str | None
    run_id: str | None
    folder: Path
    is_local: bool


def submit_fork(found: FoundRun, record: JSONObject, request: ForkRequest) -> Submission:
    """Write the run of the forks into the store of its parent, or attach to it when it is there already."""
    if request.run_id is not None and not is_run_id(request.run_id):
        raise UsageInvalid(unusable_run_id(request.run_id))
    checked = check_stored_recipe(found, model=request.model, folder=request.folder, is_local=request.is_local)
    lines = _lines(found, record, request)
    _refuse_ended(checked, lines[0], request.turn)
    run_id = request.run_id or _run_id(found, checked, lines)
    return Submission(checked, found.store, found.store.url, _written(found, checked, lines, run_id))


def _lines(found: FoundRun, record: JSONObject, request: ForkRequest) -> list[JSONObject]:
    parent = StoredLines(found).of(record["index"])
    lines = []
    for number in range(request.count):
        seed = derive_seed("fork", record["seed"], record["run_id"], request.turn, number) % _SEED_RANGE
        line = forked_line(record, parent, turn=request.turn, seed=seed)
        line["metadata"][FORK]["number"] = number
        lines.append(line)
    return lines


def _refuse_ended(checked: CheckedRecipe, line: JSONObject, turn: int) -> None:
    """A fork that would end before its model is asked is a mistake."""
    state, recipe = state_of(checked, JobLine.model_validate(line)), checked.loaded.recipe
    step = next_step(state, recipe.loop_limits(line.get("max_turns")))
    if isinstance(step, Finish):
        why = "it ended there" if step.error is None else str(step.error["message"])
        raise UsageInvalid(f"--turn {turn}: nothing is left to go on with after that turn: {why}; name an earlier turn")


def state_of(checked: CheckedRecipe, line: JobLine) -> State:
    """The state that a job line with a seed of its own begins with."""
    recipe = checked.loaded.recipe
    roles = RoleTools.of(
        checked.selector, recipe.conversation.user, line.tools, line.disabled_tools, seed=line.seed or 0
    )
    return beginning(recipe, line, roles.assistant)


def _run_id(found: FoundRun, checked: CheckedRecipe, lines: list[JSONObject]) -> str:
    """The same fork gives the same run id, so that the same command resumes."""
    digest = hashlib.sha256(checked.digest.encode())
    for line in lines:
        digest.update(orjson.dumps(line))
    return f"{found.run_id[:_LONGEST_NAME]}-fork-{digest.hexdigest()[:_DIGEST_CHARACTERS]}"


def _written(found: FoundRun, checked: CheckedRecipe, lines: list[JSONObject], run_id: str) -> RunManifest:
    found.store.check()
    writer = InputWriter(found.store, run_id, existing=read_manifest(found.store, run_id))
    for index, line in enumerate(lines):
        writer.add(line, checked.route_of_job(JobLine.model_validate(line), index))
    return create_run(
        found.store,
        run_id=run_id,
        name=found.manifest.name,
        recipe_json=checked.stored_form,
        written=writer.finish(),
        limits=checked.permit_limits,
        max_attempts=checked.max_attempts,
    )
