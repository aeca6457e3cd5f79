"""From a user's files to a run in the object store: recipe, tools and jobs checked, then written, manifest last."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from jobs.errors import RunConflict
from jobs.run import create_run, is_run_id
from producer.checked_recipe import CheckedRecipe, check_recipe
from producer.errors import InputInvalid, UsageInvalid
from producer.outcome import Summary, summary_of_entries
from producer.staged_input import BAD_LINES, STDIN, OnBadLine, open_jobs, staged_input
from producer.terminal import say
from results.manifest import RunManifest, read_manifest
from results.reading import visible_entries
from results.store import Store, open_store

_DIGEST_CHARACTERS = 8
_READ_BYTES = 1 << 20
JOBS_BESIDE_RECIPE = "jobs.jsonl"


@dataclass(frozen=True, slots=True)
class SubmissionRequest:
    """What the command line says; `is_local` when the workers run here, with this environment."""

    recipe: Path
    jobs: str | None
    results: str
    run_id: str | None
    on_bad_line: OnBadLine
    is_local: bool
    is_resumed: bool = False


@dataclass(frozen=True, slots=True)
class Submission:
    """A run whose input is durable: it can be fed."""

    checked: CheckedRecipe
    store: Store
    results_url: str
    manifest: RunManifest


def submit(request: SubmissionRequest) -> Submission:
    """Check everything and write the run, or attach to it when it is there already."""
    if request.run_id is not None and not is_run_id(request.run_id):
        raise UsageInvalid(unusable_run_id(request.run_id))
    checked = check_recipe(request.recipe, is_local=request.is_local)
    store = open_store(request.results)
    if request.is_resumed:
        return Submission(checked, store, store.url, _resumed_run(request, checked, store))
    jobs = _jobs_of(request)
    store.check()
    manifest = _stored_run(request, jobs, checked, store) or _new_run(request, jobs, checked, store)
    return Submission(checked, store, store.url, manifest)


def unusable_run_id(text: str) -> str:
    """What is said of a text that can name no run."""
    return f"--run-id {text[:150]!r}: use 1 to 128 letters, digits, dots, underscores, hyphens"


def stored_summary(store: Store, manifest: RunManifest, *, seconds: float = 0.0) -> Summary:
    """How a run stands by what is in the object store."""
    return summary_of_entries(
        visible_entries(store, manifest.run_id),
        run_id=manifest.run_id,
        jobs=manifest.jobs,
        results=store.url,
        seconds=seconds,
    )


def _jobs_of(request: SubmissionRequest) -> str:
    """Where the job lines are: as given, else the file beside the recipe."""
    beside = request.recipe.parent / JOBS_BESIDE_RECIPE
    jobs = request.jobs
    if jobs is None:
        if not beside.is_file():
            raise UsageInvalid(f"no jobs: name a file with --jobs FILE (- for stdin), or put them into {beside}")
        return str(beside)
    if jobs != STDIN and not Path(jobs).exists():
        raise InputInvalid(f"{jobs}: no such file; name a JSONL file with --jobs, or - for stdin")
    return jobs


def _resumed_run(request: SubmissionRequest, checked: CheckedRecipe, store: Store) -> RunManifest:
    """The run that --resume means: its jobs are those that are stored."""
    if request.run_id is None or request.jobs is not None:
        raise UsageInvalid("--resume takes --run-id and no --jobs: it goes on with the jobs that the run has stored")
    manifest = read_manifest(store, request.run_id)
    if manifest is None:
        raise UsageInvalid(f"--resume: no run {request.run_id} in {store.url}; look at --run-id and --results")
    return _of_same_recipe(manifest, checked, store)


def _stored_run(request: SubmissionRequest, jobs: str, checked: CheckedRecipe, store: Store) -> RunManifest | None:
    """The run that this command made earlier, when that can be told without checking every job line again."""
    if request.run_id is not None or not Path(jobs).is_file():  # A pipe can be read only once.
        return None
    manifest = read_manifest(store, _run_id(checked, _digest_of(jobs)))
    return None if manifest is None else _of_same_recipe(manifest, checked, store)


def _of_same_recipe(manifest: RunManifest, checked: CheckedRecipe, store: Store) -> RunManifest:
    if manifest.recipe_digest != checked.digest:
        raise RunConflict(
            f"run {manifest.run_id} in {store.url} was made with another recipe (or its tools changed since); "
            "give this run another --run-id, or use the recipe it was made with"
        )
    return manifest


def _new_run(request: SubmissionRequest, jobs: str, checked: CheckedRecipe, store: Store) -> RunManifest:
    with staged_input(jobs, checked.route_of_job, request.on_bad_line) as staged:
        run_id = request.run_id or _run_id(checked, staged.source_digest)
        if read_manifest(store, run_id) is None:
            staged.upload(store, run_id)
        if staged.bad_lines.count:
            say(f"{staged.bad_lines.count} bad job lines left out; they are in {store.url}/{run_id}/{BAD_LINES}")
        return create_run(
            store,
            run_id=run_id,
            name=checked.name,
            recipe_json=checked.stored_form,
            written=staged.written_as(run_id),
            limits=checked.permit_limits,
            max_attempts=checked.max_attempts,
            bad_lines=staged.bad_lines.count,
        )


def _run_id(checked: CheckedRecipe, jobs_digest: str) -> str:
    """The same recipe, tools and jobs give the same run id, so that the same command resumes."""
    digest = hashlib.sha256(f"{checked.digest} {jobs_digest}".encode()).hexdigest()
    return f"{checked.name}-{digest[:_DIGEST_CHARACTERS]}"


def _digest_of(jobs: str) -> str:
    digest = hashlib.sha256()
    with open_jobs(jobs) as stream:
        while block := stream.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()
