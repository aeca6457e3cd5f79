"""The file store: durable in the right order, whole or absent, and clear about a disk that says no."""

import os
import resource
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from results.errors import AlreadyStored, NotFound, StoreRefused
from results.file_store import FileStore

NOBODY = 65534


@pytest.fixture
def operations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The syncs and renames in their order, by path below tmp_path."""
    seen: list[str] = []
    sync, rename = os.fsync, Path.replace

    def spied_sync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(tmp_path)
        seen.append(f"sync {'TEMPORARY' if path.suffix == '.tmp' else path}")
        sync(descriptor)

    def spied_rename(path: Path, target: Path) -> Path:
        seen.append(f"rename {target.relative_to(tmp_path)}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", spied_sync)
    monkeypatch.setattr(Path, "replace", spied_rename)
    return seen


@pytest.fixture
def locked_folder() -> Iterator[Path]:
    """A folder this process may read and not write; root becomes another user meanwhile."""
    was_root = os.geteuid() == 0
    with TemporaryDirectory() as above:  # not below tmp_path, which no other user may enter
        folder = Path(above) / "locked"
        folder.mkdir()
        Path(above).chmod(0o755)
        folder.chmod(0o555)
        if was_root:
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            if was_root:
                os.seteuid(0)


def test_a_file_is_synced_then_renamed_then_its_folder_synced(tmp_path: Path, operations: list[str]) -> None:
    FileStore(tmp_path / "r").put("run/data/hour/shard", b"1")
    assert operations[-3:] == ["sync TEMPORARY", "rename r/run/data/hour/shard", "sync r/run/data/hour"]


def test_the_parents_of_new_folders_are_synced_before_the_object_is_named(
    tmp_path: Path, operations: list[str]
) -> None:
    FileStore(tmp_path / "new" / "r").put("run/data/shard", b"1")
    before = operations[: operations.index("sync TEMPORARY")]
    assert {"sync .", "sync new", "sync new/r", "sync new/r/run"} <= set(before)


def test_a_folder_another_process_made_is_synced_too(tmp_path: Path, operations: list[str]) -> None:
    (tmp_path / "r" / "run" / "data").mkdir(parents=True)
    FileStore(tmp_path / "r").put("run/data/shard", b"1")
    assert {"sync r", "sync r/run"} <= set(operations)


def test_a_known_folder_costs_two_syncs_an_object(tmp_path: Path, operations: list[str]) -> None:
    store = FileStore(tmp_path)
    store.put("run/a", b"1")
    operations.clear()
    store.put("run/b", b"1")
    assert operations == ["sync TEMPORARY", "rename run/b", "sync run"]


def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.put("run/a", b"1")
    store.delete("run/a")
    (tmp_path / "run").rmdir()
    store.put("run/a", b"2")
    assert store.get("run/a") == b"2"


def test_an_object_being_written_is_not_listed(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.put("run/a", b"1")
    (tmp_path / "run" / ".b.0123.tmp").write_bytes(b"half")
    assert [row.key for row in store.list("run")] == ["run/a"]


def test_f31_a_put_that_fails_midway_leaves_nothing_and_says_why(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        with pytest.raises(StoreRefused, match=r"cannot write .*run/a: File too large; raise the file size limit"):
            store.put("run/a", b"x" * (2 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(store.list("run")) == []
    assert list((tmp_path / "run").iterdir()) == []


@pytest.mark.parametrize("cause", ["No space left on device", "Disk quota exceeded", "Read-only file system"])
def test_f31_a_full_or_locked_disk_is_named_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    numbers = {os.strerror(number): number for number in range(1, 130)}

    def failing_sync(descriptor: int) -> None:
        raise OSError(numbers[cause], cause)

    store = FileStore(tmp_path)
    monkeypatch.setattr(os, "fsync", failing_sync)
    with pytest.raises(StoreRefused, match=rf"cannot write {tmp_path}/a: {cause}; .*or choose another results URL"):
        store.put("a", b"1")


def test_a_results_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    for root in (tmp_path / "taken", tmp_path / "taken" / "below"):
        store = FileStore(root)
        with pytest.raises(StoreRefused, match=r"cannot write .*taken.*; a file stands where a folder is needed"):
            store.put("run/a", b"1")
        with pytest.raises(StoreRefused, match="a file stands where a folder is needed"):
            store.check()


def test_a_folder_in_the_place_of_an_object_is_refused(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    (tmp_path / "run" / "a").mkdir(parents=True)
    with pytest.raises(StoreRefused, match="a folder stands where the object belongs"):
        store.put("run/a", b"1")
    with pytest.raises(NotFound):
        store.get("run/a")
    assert [row.name for row in (tmp_path / "run").iterdir()] == ["a"]


def test_a_folder_without_the_right_to_write_is_refused(locked_folder: Path) -> None:
    store = FileStore(locked_folder)
    with pytest.raises(StoreRefused, match=r"cannot write .*locked.*: Permission denied; make the folder writable"):
        store.check()
    assert list(store.list("")) == []


def test_an_object_that_is_there_is_made_durable_before_it_is_reported(tmp_path: Path, operations: list[str]) -> None:
    """The try before may have failed between its rename and the sync of the folder."""
    store = FileStore(tmp_path)
    store.put("run/a", b"1")
    operations.clear()
    with pytest.raises(AlreadyStored):
        store.put_new("run/a", b"1")
    assert operations == ["sync run"]


def test_e17_readers_see_an_object_whole_while_it_is_replaced(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    contents = [bytes([number]) * 200_000 for number in range(4)]
    store.put("run/a", contents[0])

    def replace_often(data: bytes) -> None:
        for _ in range(15):
            store.put("run/a", data)

    writers = [threading.Thread(target=replace_often, args=(data,)) for data in contents]
    for writer in writers:
        writer.start()
    seen = {store.get("run/a") for _ in range(60)}
    for writer in writers:
        writer.join()
    assert seen <= set(contents)


def test_the_url_is_the_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert FileStore(Path("out put")).url == f"file://{tmp_path}/out%20put"


def test_f36_of_many_writers_of_one_key_at_once_exactly_one_gets_it(tmp_path: Path) -> None:
    together = threading.Barrier(8)

    def write(number: int) -> bool:
        together.wait()
        try:
            FileStore(tmp_path).put_new("run/manifest.json", b"%d" % number)
        except AlreadyStored:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            winners = list(pool.map(write, range(8)))
            assert sum(winners) == 1
            assert FileStore(tmp_path).get("run/manifest.json") == b"%d" % winners.index(True)
            (tmp_path / "run" / "manifest.json").unlink()
    assert [path.name for path in (tmp_path / "run").iterdir()] == []
