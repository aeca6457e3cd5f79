"""A run is named by its directory, by a URL, or by its id and a store."""

from pathlib import Path

import pytest

from producer.errors import UsageInvalid
from producer.run_address import find_run, folder_of
from results.file_store import FileStore
from results.manifest import RunManifest, write_manifest

MANIFEST = RunManifest(
    run_id="r1",
    name="r",
    created_at="2026-01-01T00:00:00+00:00",
    jobs=0,
    recipe_key="r1/recipe.json",
    recipe_digest="0" * 64,
    input_digest="0" * 64,
    parts=(),
    routes=((),),
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_manifest(FileStore(tmp_path / "runs"), MANIFEST)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("run", ["r1", "runs/r1", "runs/r1/", "./runs/r1", "runs/../runs/r1"])
def test_a_directory_or_an_id_in_the_usual_folder(here: Path, run: str) -> None:
    assert find_run(run, None).run_id == "r1"


def test_an_id_and_a_store_or_both_in_one_url(here: Path) -> None:
    assert find_run("r1", "runs").run_id == "r1"
    assert find_run("r1", (here / "runs").as_uri()).run_id == "r1"
    assert find_run((here / "runs" / "r1").as_uri(), None).run_id == "r1"


@pytest.mark.parametrize(("run", "results"), [("r2", None), ("r1", "elsewhere"), ("..", None), ("a/..", "runs")])
def test_a_run_that_is_not_there_is_a_usage_error(here: Path, run: str, results: str | None) -> None:
    with pytest.raises(UsageInvalid, match="no run"):
        find_run(run, results)


def test_the_folder_behind_a_url_is_found_whatever_its_name(tmp_path: Path) -> None:
    odd = tmp_path / "a b%20ü"
    assert folder_of(odd.as_uri()) == odd
    assert folder_of("s3://bucket/x") is None
