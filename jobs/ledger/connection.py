"""The way to Redis: a client with bounded retries, and the calls of many conversations gathered into pipelines."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import BusyLoadingError, NoScriptError, ReadOnlyError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from jobs.errors import BrokerUnreachable, LedgerCorrupt

PASSING: Final = (RedisConnectionError, RedisTimeoutError, BusyLoadingError, ReadOnlyError, OSError)
"""What a restart or a failover of Redis looks like from here: worth another try."""

_CLOSE_SECONDS = 5.0
_GATHER_SECONDS = 0.002  # what hundreds of conversations ask for within this goes in one pipeline
Argument = str | bytes | int | float


def connect(url: str, *, socket_timeout_seconds: float = 10.0, connections: int = 8) -> Redis:
    """Open a client for a ``redis://``, ``rediss://`` or ``unix://`` URL (Celery writes ``redis+socket://``)."""
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
            async with self.redis.pipeline(transaction=False) as pipeline:
                for call in calls:
                    if not call.script.digest:
                        call.script.digest = _as_text(await self.redis.script_load(call.script.text))
                    pipeline.execute_command("EVALSHA", call.script.digest, 0, *call.arguments)
                answers = await pipeline.execute(raise_on_error=False)
            self.pipelines += 1
            self.calls += len(calls)
            for answer in answers:
                if isinstance(answer, PASSING):
                    raise answer
            if not any(isinstance(answer, NoScriptError) for answer in answers):
                return answers
            self._loaded = False  # Redis restarted or its scripts were flushed: load them again
        return answers

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
        await self.redis.aclose()


def _as_text(answer: Any) -> str:
    return answer.decode() if isinstance(answer, bytes) else str(answer)
