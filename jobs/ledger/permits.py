"""Permits: the cluster-wide slots of a stateful namespace, and the line of jobs that wait for one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from jobs.ledger.connection import ScriptRunner


@dataclass(frozen=True, slots=True)
class PermitStatistics:
    """How a namespace stands now."""

    limit: int
    held: int
    parked: int


@dataclass(frozen=True, slots=True)
class Permits:
    """Set limits and look at them; taking, keeping and handing over happen inside claim, renew and settle."""

    scripts: ScriptRunner

    async def set_limits(self, limits: Mapping[str, int]) -> None:
        """Set each namespace's limit. The latest registration counts for the whole cluster."""
        if limits:
            values = {f"parley:ns:{name}:limit": limit for name, limit in limits.items()}
            await self.scripts.patiently(lambda redis: redis.mset(values))

    async def keep_quiet(self, seconds: float) -> None:
        """Give out no new permit for so long: a ledger that was lost does not know who holds what (F7)."""
        await self.scripts.patiently(lambda redis: redis.set("parley:quiet", 1, px=round(seconds * 1000)))

    async def statistics(self, namespace: str) -> PermitStatistics:
        """Return limit, permits held and jobs parked."""

        async def read(redis: Redis) -> list[Any]:
            async with redis.pipeline(transaction=True) as pipeline:
                pipeline.get(f"parley:ns:{namespace}:limit")
                pipeline.zcard(f"parley:ns:{namespace}:held")
                pipeline.zcard(f"parley:ns:{namespace}:parked")
                answers: list[Any] = await pipeline.execute()
                return answers

        limit, held, parked = await self.scripts.patiently(read)
        return PermitStatistics(int(limit or 1), held, parked)
