"""Where a run is: what a person types (a run's directory, or a run id with --results) as store and run id."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import typer

from jobs.run import is_run_id
from producer.errors import UsageInvalid
from results.manifest import RunManifest, read_manifest
from results.reading import find_record
from results.store import Store, open_store

JSONObject = dict[str, Any]

DEFAULT_RESULTS = "runs"
RUN_ARGUMENT = typer.Argument(metavar="RUN", help="A run's directory, or its id.")
JOB_ARGUMENT = typer.Argument(metavar="INDEX|JOB_ID", help="Which conversation.")
RESULTS_OPTION = typer.Option("--results", metavar="URL", help="The store of a run that is named by its id.")


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run in a store."""

    store: Store
    manifest: RunManifest

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.manifest.run_id


def find_run(run: str, results: str | None) -> FoundRun:
    """Open the run that `RUN` and `--results` name; `UsageInvalid` when there is none."""
    address, run_id = _address(run, results)
    store = open_store(address)
    manifest = read_manifest(store, run_id) if is_run_id(run_id) else None
    if manifest is None:
        raise UsageInvalid(f"no run {run_id!r} in {store.url}: give a run's directory, or its id with --results URL")
    return FoundRun(store, manifest)


def find_job(found: FoundRun, job: str) -> JSONObject:
    """The record of the job that `JOB` names, by index when it is one, else by id; `UsageInvalid` without one."""
    record = None
    if job.isdecimal():
        record = find_record(found.store, found.run_id, index=int(job))
    if record is None:
        record = find_record(found.store, found.run_id, job_id=job)
    if record is None:
        raise UsageInvalid(
            f"run {found.run_id} has no record of job {job!r} (yet): indices go from 0 to {found.manifest.jobs - 1}; "
            "parley status says how far the run is"
        )
    return record


def folder_of(results_url: str) -> Path | None:
    """The folder behind a `file://` URL; None for any other store."""
    parts = urlsplit(results_url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def address_of(results_url: str, run_id: str) -> str:
    """What a person types for `RUN`, from here: its directory where it has one."""
    folder = folder_of(results_url)
    if folder is None:
        return f"{results_url.rstrip('/')}/{run_id}"
    path = folder / run_id
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _address(run: str, results: str | None) -> tuple[str, str]:
    if results is not None:
        return results, run
    if "://" in run:
        address, _, run_id = run.rstrip("/").rpartition("/")
        return address, run_id
    path = Path(run)
    if path.is_dir() or "/" in run:
        absolute = path.absolute()
        return str(absolute.parent), absolute.name
    return DEFAULT_RESULTS, run
