"""Progress: how far a run is, from its counters."""

from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis

from jobs.errors import RunUnknown
from jobs.ledger.connection import ScriptRunner


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run at one moment. ``jobs == ok + failed + cancelled + dead + pending``; times in Unix seconds.

    ``paused`` counts the jobs that wait for answers from outside, ``sessions_left`` those whose sessions on a backend
    outlived their holder and are not torn down yet.
    """

    run_id: str
    jobs: int
    ok: int = 0
    failed: int = 0
    cancelled: int = 0
    dead: int = 0
    queued: int = 0
    in_flight: int = 0
    parked: int = 0
    later: int = 0
    window: int = 0
    sessions_left: int = 0
    paused: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    started_at: float | None = None
    finished_at: float | None = None
    is_cancelled: bool = False

    @property
    def settled(self) -> int:
        """Return how many jobs have their record."""
        return self.ok + self.failed + self.cancelled + self.dead

    @property
    def pending(self) -> int:
        """Return how many jobs have no record yet."""
        return self.jobs - self.settled

    @property
    def is_finished(self) -> bool:
        """Say whether every job is settled."""
        return self.pending == 0


@dataclass(frozen=True, slots=True)
class Progress:
    """Reads counters; never the jobs themselves."""

    scripts: ScriptRunner

    async def snapshot(self, run_id: str) -> Snapshot:
        """Return the run's counters now. Raises :class:`RunUnknown`."""
        facts, in_flight, later, window, sessions_left, paused, queued = await self.scripts.patiently(
            lambda redis: _read(redis, run_id)
        )
        if b"jobs" not in facts:
            raise RunUnknown(f"run {run_id} is not in the ledger of this broker; submit it again to resume it")

        def number(field: str) -> int:
            return int(facts.get(field.encode(), 0))

        def seconds(field: str) -> float | None:
            return number(field) / 1000 if facts.get(field.encode()) else None

        return Snapshot(
            run_id=run_id,
            jobs=number("jobs"),
            ok=number("ok"),
            failed=number("failed"),
            cancelled=number("cancelled"),
            dead=number("dead"),
            queued=queued,
            in_flight=in_flight,
            later=later,
            window=window,
            sessions_left=sessions_left,
            paused=paused,
            parked=max(0, window - in_flight - later - queued),
            input_tokens=number("input_tokens"),
            output_tokens=number("output_tokens"),
            model_calls=number("model_calls"),
            tool_calls=number("tool_calls"),
            started_at=seconds("started_ms"),
            finished_at=seconds("finished_ms"),
            is_cancelled=b"cancel_requested" in facts,
        )


async def _read(redis: Redis, run_id: str) -> tuple[dict[bytes, bytes], int, int, int, int, int, int]:
    """Return the facts; how many jobs are claimed, due later, in the window, with sessions left, paused, queued."""
    base = f"parley:run:{run_id}"
    facts: Any = await redis.hgetall(base)
    async with redis.pipeline(transaction=True) as pipeline:
        pipeline.zcard(f"{base}:claims")
        pipeline.zcard(f"{base}:later")
        pipeline.hlen(f"{base}:window")
        pipeline.zcard(f"{base}:left")
        pipeline.hlen(f"{base}:paused")
        for route in range(int(facts.get(b"routes", 1))):
            pipeline.zcard(f"{base}:queued:{route}")
        in_flight, later, window, sessions_left, paused, *queued = await pipeline.execute()
    return facts, in_flight, later, window, sessions_left, paused, sum(queued)
