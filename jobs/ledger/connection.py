"""The way to Redis: a client with bounded retries, and the calls of many conversations gathered into pipelines."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import structlog
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import BusyLoadingError, NoScriptError, ReadOnlyError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from jobs.errors import BrokerUnreachable, LedgerCorrupt

log = structlog.get_logger(__name__)

PASSING: Final = (RedisConnectionError, RedisTimeoutError, BusyLoadingError, ReadOnlyError, OSError)
"""What a restart or a failover of Redis looks like from here: worth another try."""

_CLOSE_SECONDS = 5.0
_VERIFYING = {"required", "cert_required"}
_NO = {"0", "f", "false", "n", "no"}
_KEPT_CONNECTIONS = 4
_GATHER_SECONDS = 0.002  # what hundreds of conversations ask for within this goes in one pipeline
Argument = str | bytes | int | float


def connect(url: str, *, socket_timeout_seconds: float = 10.0, connections: int = 8) -> Redis:
    """Open a client for a ``redis://``, ``rediss://`` or ``unix://`` URL (Celery writes ``redis+socket://``).

    The certificate and its host are verified unless the URL itself says otherwise (rule S10).
    """
    _warn_when_unverified(url)
    pool = BlockingConnectionPool.from_url(
        url.replace("redis+socket://", "unix://", 1),
        max_connections=connections,
        timeout=socket_timeout_seconds,
        socket_timeout=socket_timeout_seconds,
        socket_connect_timeout=socket_timeout_seconds,
        socket_keepalive=True,
        retry=Retry(ExponentialWithJitterBackoff(base=0.05, cap=1.0), 3),
    )
    return Redis.from_pool(pool)


def _warn_when_unverified(url: str) -> None:
    parts = urlsplit(url)
    said = {key: values[-1].lower() for key, values in parse_qs(parts.query).items()}
    is_off = said.get("ssl_cert_reqs", "required") not in _VERIFYING or said.get("ssl_check_hostname") in _NO
    if parts.scheme == "rediss" and is_off:
        log.warning("the certificate of Redis is not verified", host=parts.hostname, setting="ssl_… of the broker URL")


@dataclass(slots=True)
class Script:
    """One Lua script of this folder with the prelude before it."""

    name: str
    text: str
    digest: str = ""


@dataclass(slots=True)
class _Call:
    script: Script
    arguments: Sequence[Argument]
    answer: "asyncio.Future[Any]"


def read_script(name: str) -> Script:
    """Read ``NAME.lua`` and put the shared prelude before it."""
    folder = resources.files("jobs.ledger")
    return Script(name, f"{(folder / 'prelude.lua').read_text()}\n{(folder / f'{name}.lua').read_text()}")


@dataclass(slots=True)
class ScriptRunner:
    """Runs ledger scripts; calls made within 2 ms of one another go in one pipeline.

    A script must do no harm when it is run twice: after a lost connection the whole pipeline is sent again, until
    ``patience_seconds`` are over; then every call of it raises :class:`BrokerUnreachable`.
    """

    redis: Redis
    url: str
    patience_seconds: float = 60.0
    most_calls: int = 200
    pipelines: int = 0
    calls: int = 0
    exchange_seconds: float = 10.0
    _idle: list[AbstractConnection] = field(default_factory=list)
    _waiting: list[_Call] = field(default_factory=list)
    _under_way: set["asyncio.Task[Any]"] = field(default_factory=set)
    _loaded: bool = False
    _scripts: dict[str, Script] = field(default_factory=dict)

    def script(self, name: str) -> Script:
        """Return the named script, read once."""
        if name not in self._scripts:
            self._scripts[name] = read_script(name)
        return self._scripts[name]

    async def run(self, script: Script, *arguments: Argument) -> Any:
        """Run one script; the answer is what its ``return`` gave (bytes, int, list)."""
        loop = asyncio.get_running_loop()
        call = _Call(script, arguments, loop.create_future())
        self._waiting.append(call)
        if len(self._waiting) == 1:
            loop.call_later(_GATHER_SECONDS, self._flush)
        return await call.answer

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for first in range(0, len(waiting), self.most_calls):
            task = asyncio.get_running_loop().create_task(self._send(waiting[first : first + self.most_calls]))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _send(self, calls: list[_Call]) -> None:
        try:
            answers = await self._until_answered(lambda _: self._pipeline(calls))
        except BaseException as failure:
            for call in calls:
                if not call.answer.done():
                    call.answer.set_exception(failure)
                    call.answer.exception()  # a caller that was cancelled meanwhile looks at nothing
            if not isinstance(failure, Exception):
                raise
            return
        for call, answer in zip(calls, answers, strict=True):
            if call.answer.done():
                continue
            if isinstance(answer, RedisError):
                call.answer.set_exception(LedgerCorrupt(f"ledger script {call.script.name} failed: {answer}"))
            else:
                call.answer.set_result(answer)

    async def patiently(self, operation: Callable[[Redis], Awaitable[Any]]) -> Any:
        """Try an operation that may be repeated until it is answered; :class:`BrokerUnreachable` when patience ends.

        It runs in a task of its own: redis-py sometimes swallows a cancellation (seen with 8.1), and a caller that is
        told to end must end.
        """
        task = asyncio.get_running_loop().create_task(self._until_answered(operation))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def _until_answered(self, operation: Callable[[Redis], Awaitable[Any]]) -> Any:
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self.patience_seconds
        pause = 0.1
        while True:
            try:
                return await operation(self.redis)
            except PASSING as failure:
                if loop.time() >= give_up_at:
                    raise BrokerUnreachable(self.url, str(failure)) from failure
            await asyncio.sleep(pause)
            pause = min(pause * 2, 2.0)

    async def _pipeline(self, calls: list[_Call]) -> list[Any]:
        answers: list[Any] = []
        for _ in range(2):
            if not self._loaded:
                await self._load(calls)
            for call in calls:
                if not call.script.digest:
                    call.script.digest = _as_text(await self.redis.script_load(call.script.text))
            answers = await self._exchange([("EVALSHA", call.script.digest, 0, *call.arguments) for call in calls])
            self.pipelines += 1
            self.calls += len(calls)
            for answer in answers:
                if isinstance(answer, PASSING):
                    raise answer
            if not any(isinstance(answer, NoScriptError) for answer in answers):
                return answers
            self._loaded = False  # Redis restarted or its scripts were flushed: load them again
        return answers

    async def _exchange(self, commands: Sequence[tuple[Argument, ...]]) -> list[Any]:
        """Send commands together and return their answers, errors of single ones among them.

        redis-py's own pipeline sets up a deadline for every single answer, a quarter of what a call costs here; this is
        one for them all. A connection that was used well is kept for the next exchange.
        """
        pool = self.redis.connection_pool
        connection: AbstractConnection
        if self._idle:
            connection = self._idle.pop()
        else:
            connection = await pool.get_connection()  # type: ignore[no-untyped-call]  # its decorator is untyped
        is_sound = False
        try:
            async with asyncio.timeout(self.exchange_seconds):
                await connection.send_packed_command(connection.pack_commands(commands), check_health=False)
                answers = [await _answer_of(connection) for _ in commands]
            is_sound = True
        except TimeoutError as failure:
            raise RedisTimeoutError(f"no answer within {self.exchange_seconds:g} s") from failure
        finally:
            if is_sound and len(self._idle) < _KEPT_CONNECTIONS:
                self._idle.append(connection)
            else:
                await pool.release(connection)
            if not is_sound:
                await self._release_idle()
        return answers

    async def _release_idle(self) -> None:
        """Give kept connections back to the pool, which looks whether they still are connected."""
        while self._idle:
            await self.redis.connection_pool.release(self._idle.pop())

    async def _load(self, calls: list[_Call]) -> None:
        for script in {call.script.name: call.script for call in calls}.values():
            script.digest = _as_text(await self.redis.script_load(script.text))
        self._loaded = True

    async def close(self) -> None:
        """Wait a moment for the calls under way, then close the connections."""
        if self._waiting:
            self._flush()
        if self._under_way:
            _, late = await asyncio.wait(list(self._under_way), timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()
        await self.redis.aclose()  # the kept ones as well


async def _answer_of(connection: AbstractConnection) -> Any:
    """Read one answer without a deadline of its own; an error of the command is an answer."""
    try:
        return await connection.read_response(timeout=math.inf)
    except ResponseError as refusal:
        return refusal


def _as_text(answer: Any) -> str:
    return answer.decode() if isinstance(answer, bytes) else str(answer)
