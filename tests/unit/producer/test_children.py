"""The note about a run's children: readable by its owner only, and trusted only while a child lives."""

import stat
import subprocess
import sys
from pathlib import Path

from producer.children import Children, private_broker, run_folder

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_the_private_redis_is_known_while_a_child_lives(tmp_path: Path) -> None:
    folder = run_folder(tmp_path.as_uri(), "r1")
    folder.mkdir()
    children = Children(folder, broker_url="redis://:secret@127.0.0.1:1/0")
    with subprocess.Popen(SLEEPER, start_new_session=True) as process:
        children.note("redis", process.pid)
        assert private_broker(tmp_path.as_uri(), "r1") == "redis://:secret@127.0.0.1:1/0"
        process.kill()
    assert private_broker(tmp_path.as_uri(), "r1") is None


def test_sec_s11_the_note_with_the_password_is_its_owners_only_and_goes_with_the_run(tmp_path: Path) -> None:
    children = Children(tmp_path, broker_url="redis://:secret@127.0.0.1:1/0")
    children.note("redis", 1)
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    children.forget()
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_an_earlier_start_are_ended_and_damaged_notes_are_none(tmp_path: Path) -> None:
    with subprocess.Popen(SLEEPER, start_new_session=True) as process:
        Children(tmp_path).note("worker 1", process.pid)
        Children(tmp_path).kill_leftovers()
        assert process.wait(20) < 0
    for damaged in ("", "[]", '{"processes": 3}', '{"processes": [{}]}', "\x00"):
        (tmp_path / "children.json").write_text(damaged)
        Children(tmp_path).kill_leftovers()


def test_a_run_in_a_cloud_store_keeps_its_files_in_the_working_folder() -> None:
    assert run_folder("s3://bucket/x", "r1") == Path(".parley/r1")
