"""The way to Redis: one deadline for all answers of a pipeline, and connections that are used again only when sound."""

import asyncio
import signal
from typing import Any

import pytest

from jobs.errors import BrokerUnreachable, LedgerCorrupt
from jobs.ledger import Ledger
from jobs.ledger.connection import Script, ScriptRunner
from tests.support.redis_server import RedisServer

ECHO = "return ARGV[1]"
FAILING = "return redis.call('NO_SUCH_COMMAND')"


def script(text: str) -> Script:
    return Script(text[:20], text)


def connections(runner: ScriptRunner) -> int:
    return len(runner._idle)


async def test_answers_come_back_to_who_asked(ledger: Ledger) -> None:
    echo = script(ECHO)
    answers = await asyncio.gather(*(ledger.scripts.run(echo, f"text {number}") for number in range(500)))
    assert answers == [f"text {number}".encode() for number in range(500)]
    assert ledger.scripts.pipelines < 10


async def test_a_script_that_fails_fails_its_own_caller_only(ledger: Ledger) -> None:
    outcomes = await asyncio.gather(
        ledger.scripts.run(script(ECHO), "before"),
        ledger.scripts.run(script(FAILING)),
        ledger.scripts.run(script(ECHO), "after"),
        return_exceptions=True,
    )
    assert [outcomes[0], outcomes[2]] == [b"before", b"after"]
    assert isinstance(outcomes[1], LedgerCorrupt)


async def test_scripts_that_the_server_forgot_are_loaded_again(ledger: Ledger) -> None:
    echo = script(ECHO)
    assert await ledger.scripts.run(echo, "one") == b"one"
    await ledger.scripts.redis.script_flush()
    assert await ledger.scripts.run(echo, "two") == b"two"


async def test_f6_kept_connections_that_the_server_closed_are_replaced(ledger: Ledger) -> None:
    echo = script(ECHO)
    await asyncio.gather(*(ledger.scripts.run(echo, "x") for _ in range(700)))
    assert connections(ledger.scripts) > 1
    await ledger.scripts.redis.client_kill_filter(_type="normal", skipme=True)
    answers = await asyncio.gather(*(ledger.scripts.run(echo, f"{number}") for number in range(700)))
    assert answers == [f"{number}".encode() for number in range(700)]


async def test_f8_a_server_that_hangs_ends_the_wait_and_its_late_answers_reach_nobody(server: RedisServer) -> None:
    echo = script(ECHO)
    async with Ledger.open(server.url, patience_seconds=0.0, socket_timeout_seconds=0.2) as ledger:
        assert await ledger.scripts.run(echo, "before") == b"before"
        assert server.process is not None
        server.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(BrokerUnreachable, match=r"127\.0\.0\.1"):
                await ledger.scripts.run(echo, "lost")
        finally:
            server.process.send_signal(signal.SIGCONT)
        ledger.scripts.patience_seconds = 20.0
        answers: list[Any] = [await ledger.scripts.run(echo, f"{number}") for number in range(5)]
        assert answers == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_caller_that_gives_up_takes_no_answer_from_the_others(ledger: Ledger) -> None:
    echo = script(ECHO)
    asked = [asyncio.create_task(ledger.scripts.run(echo, f"{number}")) for number in range(100)]
    await asyncio.sleep(0)
    for task in asked[::2]:
        task.cancel()
    await asyncio.wait(asked)
    assert [task.result() for task in asked[1::2]] == [f"{number}".encode() for number in range(1, 100, 2)]


async def test_every_connection_is_closed_at_the_end(server: RedisServer) -> None:
    with server.client() as client:
        before = len(client.client_list())
        async with Ledger.open(server.url) as ledger:
            await asyncio.gather(*(ledger.scripts.run(script(ECHO), "x") for _ in range(700)))
            assert len(client.client_list()) > before
        while len(client.client_list()) > before:
            await asyncio.sleep(0)
