"""The manifest of a run: written once, read by everybody, strict in both directions."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from results.errors import AlreadyStored, InvalidKey, ResultsError, StoreUnavailable
from results.manifest import InputPart, RunManifest, manifest_key, part_key, read_manifest, write_manifest
from results.store import Store, open_store
from tests.unit.results.fault_store import Fault, FaultStore

DIGEST = "0" * 64


def made_manifest(**changes: Any) -> RunManifest:
    fields: dict[str, Any] = {
        "run_id": "run-1",
        "name": "weather",
        "created_at": "2026-11-21T01:02:03Z",
        "jobs": 2,
        "recipe_key": "run-1/recipe.json",
        "recipe_digest": DIGEST,
        "input_digest": DIGEST,
        "parts": (InputPart(key=part_key("run-1", 0), first_index=0, count=2, digest=DIGEST),),
        "routes": ((), ("hr_api",)),
        "uniform_route": 0,
    }
    return RunManifest(**(fields | changes))


@pytest.fixture(params=["file", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "r") if request.param == "file" else request.getfixturevalue("bucket_url"))


def test_a_manifest_comes_back_as_it_was_written(store: Store) -> None:
    write_manifest(store, made_manifest())
    assert read_manifest(store, "run-1") == made_manifest()
    assert store.get("run-1/manifest.json")[:1] == b"{"


def test_a_run_that_is_not_there_has_no_manifest(store: Store) -> None:
    assert read_manifest(store, "run-1") is None


def test_f36_the_same_manifest_may_be_written_again_another_one_not(store: Store) -> None:
    write_manifest(store, made_manifest())
    write_manifest(store, made_manifest())
    with pytest.raises(AlreadyStored, match=r"manifest\.json"):
        write_manifest(store, made_manifest(jobs=3))
    assert read_manifest(store, "run-1") == made_manifest()


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
def test_f13_a_failed_write_is_repeated(tmp_path: Path, fault: Fault) -> None:
    store = FaultStore(open_store(str(tmp_path)), [fault])
    pauses: list[float] = []
    write_manifest(store, made_manifest(), wait=pauses.append)
    assert read_manifest(store, "run-1") == made_manifest()
    assert len(pauses) == 1


def test_a_store_that_stays_away_ends_the_tries(tmp_path: Path) -> None:
    store = FaultStore(open_store(str(tmp_path)), then=Fault.BEFORE)
    pauses: list[float] = []
    with pytest.raises(StoreUnavailable):
        write_manifest(store, made_manifest(), wait=pauses.append)
    assert len(store.puts) == 4


@pytest.mark.parametrize("data", [b"", b"{}", b"not json", b'{"format": 2}'])
def test_a_damaged_manifest_is_named(tmp_path: Path, data: bytes) -> None:
    store = open_store(str(tmp_path))
    store.put(manifest_key("run-1"), data)
    with pytest.raises(ResultsError, match=r"run-1/manifest\.json: not a manifest"):
        read_manifest(store, "run-1")


@pytest.mark.parametrize("run_id", ["../x", "a/b", "", ".", "..", "ä", "x" * 1025, "x" * 129, "a b", "a\n"])
def test_sec_s15_a_run_id_that_could_leave_its_folder_is_refused(run_id: str) -> None:
    with pytest.raises(InvalidKey, match="run id"):
        manifest_key(run_id)
    with pytest.raises(ValidationError):
        made_manifest(run_id=run_id)


def test_an_unknown_field_or_an_unsafe_key_is_refused() -> None:
    for bad in ({"secret": "x"}, {"recipe_key": "../x"}, {"recipe_digest": "x"}, {"format": 2}, {"jobs": -1}):
        with pytest.raises(ValidationError):
            made_manifest(**bad)
