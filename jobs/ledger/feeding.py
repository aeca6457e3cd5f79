"""Feeding: putting jobs into a run's window, by one feeder at a time."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from redis.asyncio import Redis

from jobs.ledger.connection import PASSING, ScriptRunner

FED_JOB = tuple[int, int]
"""The index of a job and the number of its route."""


@dataclass(frozen=True, slots=True)
class Feeding:
    """The feeder's lease and its batches."""

    scripts: ScriptRunner
    lease_seconds: float = 15.0

    async def take_lease(self, run_id: str, token: str) -> bool:
        """Become, or stay, the one feeder of the run; False while another one works."""
        key, lease = f"parley:run:{run_id}:feeder", round(self.lease_seconds * 1000)

        async def take(redis: Redis) -> bool:
            if await redis.set(key, token, nx=True, px=lease):
                return True
            if await redis.get(key) != token.encode():
                return False
            return bool(await redis.pexpire(key, lease))

        return bool(await self.scripts.patiently(take))

    async def drop_lease(self, run_id: str, token: str) -> None:
        """Let the next feeder in at once."""
        key = f"parley:run:{run_id}:feeder"
        with suppress(*PASSING):  # a broker that is away lets the lease run out by itself
            if await self.scripts.redis.get(key) == token.encode():
                await self.scripts.redis.delete(key)

    async def feed(self, run_id: str, token: str, jobs: Sequence[FED_JOB]) -> bool:
        """Send jobs that are neither done nor in the window; False when the lease is another feeder's."""
        flat = [number for job in jobs for number in job]
        return bool(await self.scripts.run(self.scripts.script("feed"), run_id, token, *flat) >= 0)

    async def done_bits(self, run_id: str) -> bytes:
        """Return the bitmap of settled jobs: bit 7 of byte 0 is job 0."""
        bits: bytes | None = await self.scripts.patiently(lambda redis: redis.get(f"parley:run:{run_id}:done"))
        return bits or b""

    async def window_size(self, run_id: str) -> int:
        """Return how many jobs are fed and not settled."""
        return int(await self.scripts.patiently(lambda redis: redis.hlen(f"parley:run:{run_id}:window")))
