"""A run in object storage: parts, recipe, manifest, and what is refused."""

from pathlib import Path

import orjson
import pytest

from jobs.errors import InputCorrupt, RunConflict
from jobs.run import InputWriter, create_run, is_run_id, part_of, read_part, read_recipe
from results.manifest import RunManifest, read_manifest
from results.store import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path))


def write_run(store: Store, count: int = 5, *, recipe: bytes = b"{}", prompt: str = "hello") -> RunManifest:
    writer = InputWriter(store, "run", existing=read_manifest(store, "run"), jobs_per_part=2)
    for number in range(count):
        writer.add({"prompt": f"{prompt} {number}"}, ("hr_api",) if number == 3 else ())
    return create_run(store, run_id="run", name="w", recipe_json=recipe, written=writer.finish(), limits={"hr_api": 4})


def test_jobs_get_dense_indices_in_parts_of_bounded_size(store: Store) -> None:
    manifest = write_run(store)
    assert manifest.jobs == 5
    assert [(part.first_index, part.count) for part in manifest.parts] == [(0, 2), (2, 2), (4, 1)]
    lines = [orjson.loads(line) for part in manifest.parts for line in read_part(store, part)]
    assert [line["prompt"] for line in lines] == [f"hello {number}" for number in range(5)]
    assert [line["route"] for line in lines] == [0, 0, 0, 1, 0]
    assert manifest.routes == ((), ("hr_api",))
    assert manifest.uniform_route is None
    assert [part_of(manifest.parts, index) for index in range(5)] == [0, 0, 1, 1, 2]


def test_the_same_run_again_attaches_and_changes_nothing(store: Store) -> None:
    first = write_run(store)
    assert write_run(store) == first


@pytest.mark.parametrize(("changed", "says"), [({"prompt": "bye"}, "jobs"), ({"recipe": b'{"a":1}'}, "recipe")])
def test_another_run_under_a_used_name_is_refused_and_spoils_nothing(
    store: Store, changed: dict[str, bytes | str], says: str
) -> None:
    manifest = write_run(store)
    with pytest.raises(RunConflict, match=f"another {says}") as caught:
        write_run(store, **changed)  # type: ignore[arg-type]
    assert "--run-id" in str(caught.value)
    assert [len(read_part(store, part)) for part in manifest.parts] == [2, 2, 1]
    assert read_recipe(store, manifest) == b"{}"


def test_a_run_without_its_manifest_does_not_exist(store: Store) -> None:
    writer = InputWriter(store, "run")
    writer.add({"prompt": "x"}, ())
    writer.finish()
    assert read_manifest(store, "run") is None


def test_changed_input_is_noticed(store: Store, tmp_path: Path) -> None:
    manifest = write_run(store)
    part = tmp_path / manifest.parts[0].key
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(InputCorrupt, match="was changed"):
        read_part(store, manifest.parts[0])
    (tmp_path / manifest.recipe_key).unlink()
    with pytest.raises(InputCorrupt, match="is missing"):
        read_recipe(store, manifest)


@pytest.mark.parametrize("bad", ["", ".", "..", "a/b", "../x", "a b", "é", "x" * 129, "a\n"])
def test_sec_s15_a_name_that_could_leave_its_folder_is_no_run_id(bad: str) -> None:
    assert not is_run_id(bad)


def test_a_readable_name_is_a_run_id() -> None:
    assert is_run_id("weather-v2.2026_11")
