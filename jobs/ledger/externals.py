"""External calls: jobs that wait for answers from outside, each call answered at most once (rules S4-S18, F39)."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal, get_args

from redis.asyncio.client import PubSub

from jobs.errors import BrokerUnreachable, LedgerCorrupt
from jobs.job import JobReference
from jobs.ledger.claims import Claim
from jobs.ledger.connection import PASSING, ScriptRunner

JobState = Literal["unknown_run", "unknown_job", "finished", "waiting", "resumed", "running"]
CallOutcome = Literal["accepted", "answered", "late", "unknown"]
LATE = "late"
FINISHED = "finished"
_SUBSCRIBE_SECONDS = 10.0
_CALL = b"c:"


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of answers: how the job stands now, and each call's outcome by its id."""

    job: JobState
    calls: Mapping[str, CallOutcome]


@dataclass(frozen=True, slots=True)
class Awaited:
    """A job that paused: the key of its stored state, and for each call the key of its answer, LATE, or None.

    `ends` says in Unix seconds when the time of those that still wait is over, where it is bounded.
    """

    state_key: str
    calls: Mapping[str, str | None]
    ends: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listening:
    """Hears of jobs that pause. What is said while the connection is being mended is missed: look once in a while."""

    pubsub: PubSub
    url: str

    async def next(self, timeout_seconds: float) -> str | None:
        """Return the index of a job that paused, FINISHED at the run's end, None when nothing was said in time."""
        async with _as_unreachable(self.url):
            message = await self.pubsub.get_message(ignore_subscribe_messages=True, timeout=timeout_seconds)
        return message["data"].decode() if message is not None and message["type"] == "message" else None


@dataclass(frozen=True, slots=True)
class Externals:
    """Pause and answer. The ledger holds keys and call ids; what is asked and answered lies in object storage."""

    scripts: ScriptRunner
    lease_seconds: float = 60.0

    async def pause(self, claim: Claim, state_key: str, calls: Sequence[tuple[str, float | None]]) -> bool:
        """Let the job wait; False when the claim is lost. `calls` are ids, and the seconds each may take if bounded."""
        flat = [part for call_id, seconds in calls for part in (call_id, _milliseconds(seconds or 0.0))]
        answer = await self.scripts.run(
            self.scripts.script("pause"),
            claim.job.run_id,
            claim.job.index,
            claim.fence,
            state_key,
            _milliseconds(self.lease_seconds),
            *flat,
        )
        return bool(answer != b"fenced")

    async def answer(self, run_id: str, index: int, answers_key: str, call_ids: Sequence[str]) -> Answered:
        """Take answers that are stored under a key; whoever comes first for a call wins it."""
        state, *outcomes = await self.scripts.run(self.scripts.script("answer"), run_id, index, answers_key, *call_ids)
        told = [outcome.decode() for outcome in outcomes]
        if state.decode() not in get_args(JobState) or not set(told) <= set(get_args(CallOutcome)):
            raise LedgerCorrupt(
                f"answering {run_id}.{index} gave {state!r}, {told}; do all parts run the same version?"
            )
        return Answered(state.decode(), dict(zip(call_ids, told, strict=False)))

    async def awaited(self, job: JobReference) -> Awaited | None:
        """Return what a job waited for; None for one that never paused."""
        key = f"parley:run:{job.run_id}:awaited:{job.index}"
        found: dict[bytes, bytes] = await self.scripts.patiently(lambda redis: redis.hgetall(key))
        if b"key" not in found:
            return None
        values = {
            name.removeprefix(_CALL).decode(): value.decode() for name, value in found.items() if name.startswith(_CALL)
        }
        return Awaited(
            state_key=found[b"key"].decode(),
            calls={call_id: _answer_key(value) for call_id, value in values.items()},
            ends={call_id: int(value[1:]) / 1000 for call_id, value in values.items() if value[:1] == "?" != value},
        )

    async def paused(self, run_id: str) -> list[int]:
        """Return the indices of the jobs that wait, in order."""
        found: list[bytes] = await self.scripts.patiently(lambda redis: redis.hkeys(f"parley:run:{run_id}:paused"))
        return sorted(int(index) for index in found)

    @asynccontextmanager
    async def listening(self, run_id: str) -> AsyncIterator["Listening"]:
        """Be told, for the block, of each job that pauses from now on. BrokerUnreachable when nobody answers."""
        pubsub = self.scripts.redis.pubsub()
        try:
            async with _as_unreachable(self.scripts.url):
                await pubsub.subscribe(channel_of(run_id))
                await pubsub.get_message(timeout=_SUBSCRIBE_SECONDS)  # its confirmation: from here nothing is missed
            yield Listening(pubsub, self.scripts.url)
        finally:
            with suppress(*PASSING):
                await pubsub.aclose()  # type: ignore[no-untyped-call]  # redis-py leaves it untyped

    async def restore(
        self, run_id: str, index: int, route: int, state_key: str, calls: Sequence[tuple[str, str | None, float | None]]
    ) -> bool:
        """Enter a paused job again after the ledger was lost; `calls` are ids, keys of answers and seconds allowed."""
        flat = [part for name, key, seconds in calls for part in (name, key or "", _milliseconds(seconds or 0.0))]
        entered = await self.scripts.run(self.scripts.script("restore_paused"), run_id, index, route, state_key, *flat)
        return bool(entered)


def channel_of(run_id: str) -> str:
    """Return the channel on which the index of each job that pauses is told, and at last FINISHED."""
    return f"parley:paused:{run_id}"


@asynccontextmanager
async def _as_unreachable(url: str) -> AsyncIterator[None]:
    try:
        yield
    except PASSING as failure:
        raise BrokerUnreachable(url, str(failure)) from failure


def _answer_key(value: str) -> str | None:
    if value.startswith("?"):
        return None
    return LATE if value == LATE else value.removeprefix("=")


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
