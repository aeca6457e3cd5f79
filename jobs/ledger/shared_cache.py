"""Results of read-only tools that all workers share: bounded, and never worth waiting for."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import structlog

from jobs.errors import JobsError
from jobs.ledger.connection import ScriptRunner

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class LedgerCache:
    """What `engines.calling.result_cache.SharedCache` asks for, in Redis: failures are misses.

    All values together take at most ``most_bytes`` of Redis; those that would expire first make room. After a failure
    nobody asks for ``rest_seconds``, so that a broker that hangs holds up no tool call.
    """

    scripts: ScriptRunner
    most_bytes: int = 64 << 20
    most_value_bytes: int = 256 << 10
    deadline_seconds: float = 0.5
    rest_seconds: float = 5.0
    hits: int = 0
    misses: int = 0
    failures: int = 0
    _rests_until: float = field(default=float("-inf"))

    async def get(self, key: str) -> bytes | None:
        """Return what is kept under a key; None when there is nothing or Redis cannot be asked."""
        script = self.scripts.script("kept_result")
        value: bytes | None = await self._asked(lambda: self.scripts.run(script, _digest(key)))
        if value is None:
            self.misses += 1
        else:
            self.hits += 1
        return value

    async def put(self, key: str, value: bytes, *, ttl_seconds: float) -> None:
        """Keep a value for so long, unless it is too large."""
        if len(value) > self.most_value_bytes or ttl_seconds <= 0:
            return
        script = self.scripts.script("keep_result")
        ttl_ms = max(1, round(ttl_seconds * 1000))
        await self._asked(lambda: self.scripts.run(script, _digest(key), value, ttl_ms, self.most_bytes))

    async def _asked(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Return the answer; None after a failure and for a while from then on."""
        now = asyncio.get_running_loop().time()
        if now < self._rests_until:
            return None
        try:
            async with asyncio.timeout(self.deadline_seconds):
                return await ask()
        except (JobsError, TimeoutError) as failure:
            self.failures += 1
            self._rests_until = now + self.rest_seconds
            log.warning("the shared cache rests", seconds=self.rest_seconds, cause=repr(failure))
            return None


@dataclass(frozen=True, slots=True)
class ScopedCache:
    """A part of the cache that others cannot see: those that reach other backends, or the same with other rights."""

    cache: LedgerCache
    scope: str

    async def get(self, key: str) -> bytes | None:
        """Return what is kept under a key of this scope."""
        return await self.cache.get(f"{self.scope} {key}")

    async def put(self, key: str, value: bytes, *, ttl_seconds: float) -> None:
        """Keep a value under a key of this scope."""
        await self.cache.put(f"{self.scope} {key}", value, ttl_seconds=ttl_seconds)


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
