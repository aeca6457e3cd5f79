"""The external calls of one run: which wait, being told of new ones, and giving results to them."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from jobs.errors import RunUnknown
from jobs.job import JobReference, task_id
from jobs.ledger import Ledger
from jobs.ledger.externals import FINISHED, LATE, Awaited, CallOutcome, JobState, Listening
from jobs.paused import PausedJob, PendingCall, new_answers_key, read_paused, write_answers
from jobs.run import read_part
from producer.errors import CallUnknown, NoSuchJob, NotPaused, ResultInvalid
from producer.external_answers import Given, ResultCheck, entries_of
from producer.run_address import FoundRun
from results.async_store import AsyncStore
from results.manifest import RunManifest
from results.store import Store

JSONObject = dict[str, Any]

_AT_ONCE = 64
_LOOK_SECONDS = 30.0
_REFUSALS: Mapping[CallOutcome, str] = {
    "answered": "it is answered already, and the first answer stands",
    "late": "this comes too late: its time was over, and the conversation goes on without it",
    "unknown": "the job never asked for it",
}


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A call that waits for its result; `ends_at` (Unix seconds) is when its time is over, None: never."""

    call_id: str
    name: str
    arguments: JSONObject
    ends_at: float | None = None

    def to_dict(self) -> JSONObject:
        """Return `{"call_id", "name", "arguments", "ends_at"}`, the time in ISO 8601."""
        ends = None if self.ends_at is None else datetime.fromtimestamp(self.ends_at, UTC).isoformat(timespec="seconds")
        return {"call_id": self.call_id, "name": self.name, "arguments": self.arguments, "ends_at": ends}


@dataclass(frozen=True, slots=True)
class PendingJob:
    """A conversation that waits, and the calls of it that have no result yet."""

    run_id: str
    index: int
    job_id: str
    paused_at: str
    calls: tuple[WaitingCall, ...]

    @property
    def task_id(self) -> str:
        """Return the name of the job in queues, logs and Flower."""
        return task_id(self.run_id, self.index)

    def to_dict(self) -> JSONObject:
        """Return `{"index", "job_id", "task_id", "paused_at", "calls"}`."""
        calls = [call.to_dict() for call in self.calls]
        return {
            "index": self.index, "job_id": self.job_id, "task_id": self.task_id, "paused_at": self.paused_at,
            "calls": calls,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answers:
    """What became of results: each call's outcome, and whether the job goes on (`resumed`) or waits for more."""

    index: int
    job: JobState
    calls: Mapping[str, CallOutcome] = field(default_factory=dict)

    @property
    def accepted(self) -> list[str]:
        """Return the calls whose result is this one."""
        return [call_id for call_id, outcome in self.calls.items() if outcome == "accepted"]

    @property
    def refused(self) -> dict[str, str]:
        """Return, for the others, why not."""
        return {call_id: _REFUSALS[outcome] for call_id, outcome in self.calls.items() if outcome != "accepted"}


class ExternalCalls:
    """Asks and answers for one run, on a loop; `producer.external` is the same for callers without one."""

    def __init__(self, found: FoundRun, ledger: Ledger, store: AsyncStore) -> None:
        self._found, self._ledger, self._store = found, ledger, store
        self._told: dict[int, str] = {}  # by index the state whose calls were told
        self._check: ResultCheck | None = None
        self._indices: dict[str, int] | None = None
        self.is_finished = False

    async def pending(self) -> list[PendingJob]:
        """Return every job that waits, in the order of their indices."""
        return await self._look(await self._paused())

    async def wait(self, timeout_seconds: float | None = None) -> list[PendingJob]:
        """Return the jobs that wait and were not returned by an earlier `wait`, as soon as there is one.

        Empty when the time is over, or the run (`is_finished`). It sleeps until the ledger tells of a pause.
        """
        loop = asyncio.get_running_loop()
        ends = None if timeout_seconds is None else loop.time() + timeout_seconds
        async with self._ledger.externals.listening(self._found.run_id) as listening:
            while not self.is_finished:
                if jobs := await self._untold(await self._paused()):
                    return jobs
                self.is_finished = await self._is_finished()
                left = _LOOK_SECONDS if ends is None else min(_LOOK_SECONDS, ends - loop.time())
                if left <= 0 or self.is_finished:
                    break
                if jobs := await self._heard(listening, left):
                    return jobs
        return []

    async def answer(self, job: int | str, given: Given) -> Answers:
        """Give results to a job (index, task id or id); each call takes the first one, and at most one.

        Everything is checked before anything is taken: NoSuchJob, NotPaused, CallUnknown, ResultInvalid. Late ones and
        those that somebody else answered are no errors but outcomes. BrokerUnreachable: nothing was stored, unless it
        went away in between; then the same call again is safe.
        """
        entries = entries_of(given)
        if not entries:
            raise ResultInvalid("there are no results to give")
        index = await self._index_of(job)
        awaited = await self._ledger.externals.awaited(JobReference(self._found.run_id, index))
        if awaited is None:
            raise await self._not_paused(index)
        waiting = [call_id for call_id, key in awaited.calls.items() if key is None]
        if strangers := [call_id for call_id in entries if call_id not in awaited.calls]:
            if not waiting:
                raise await self._not_paused(index)
            raise CallUnknown(
                f"job {index} of {self._found.run_id} asks for no call {strangers[0]!r}; "
                f"it waits for {', '.join(waiting)}"
            )
        paused = await self._store.in_thread(read_paused, self._store.store, awaited.state_key)
        asked = [call for call in paused.calls if awaited.calls.get(call.call_id) is None]
        checked = await self._checked(asked, entries)
        return await self._give(index, entries, checked)

    async def _give(self, index: int, entries: Mapping[str, JSONObject], checked: Mapping[str, JSONObject]) -> Answers:
        """Store what may be taken, let the ledger decide, and leave nothing that was not taken."""
        run_id, store = self._found.run_id, self._store
        key = new_answers_key(run_id, index, time.time())
        if checked:
            await store.in_thread(write_answers, store.store, key, checked)
        answered = await self._ledger.externals.answer(run_id, index, key, list(entries))
        answers = Answers(index, answered.job, answered.calls)
        taken = {call_id: checked[call_id] for call_id in answers.accepted if call_id in checked}
        if len(taken) < len(checked):
            # A ledger that is lost is rebuilt from what lies here: an answer that nobody took must not win then.
            await (store.in_thread(write_answers, store.store, key, taken) if taken else store.delete(key))
        if not answered.calls:
            raise await self._not_paused(index)
        return answers

    async def _paused(self) -> list[int]:
        return await self._ledger.externals.paused(self._found.run_id)

    async def _is_finished(self) -> bool:
        with suppress(RunUnknown):  # a ledger that was lost gets its runs back in a moment
            return (await self._ledger.progress.snapshot(self._found.run_id)).is_finished
        return False

    async def _heard(self, listening: Listening, seconds: float) -> list[PendingJob]:
        """Sleep until a job pauses, and return it with those that paused at the same time."""
        indices: set[int] = set()
        while (said := await listening.next(0.0 if indices else seconds)) is not None:
            if said == FINISHED:
                self.is_finished = True
                break
            indices.add(int(said))
        return await self._untold(sorted(indices))

    async def _untold(self, indices: Iterable[int]) -> list[PendingJob]:
        return await self._look(indices, only_new=True)

    async def _look(self, indices: Iterable[int], *, only_new: bool = False) -> list[PendingJob]:
        """What these jobs wait for; those that went on meanwhile are left out."""
        gate = asyncio.Semaphore(_AT_ONCE)

        async def look(index: int) -> PendingJob | None:
            async with gate:
                return await self._pending_job(index, only_new=only_new)

        return [job for job in await asyncio.gather(*map(look, indices)) if job is not None]

    async def _pending_job(self, index: int, *, only_new: bool) -> PendingJob | None:
        awaited = await self._ledger.externals.awaited(JobReference(self._found.run_id, index))
        if awaited is None or (only_new and self._told.get(index) == awaited.state_key):
            return None
        paused = await self._store.in_thread(read_paused, self._store.store, awaited.state_key)
        job = pending_job(self._found.run_id, paused, awaited)
        if only_new and job is not None:
            self._told[index] = awaited.state_key
        return job

    async def _checked(self, calls: Iterable[PendingCall], entries: Mapping[str, JSONObject]) -> dict[str, JSONObject]:
        if self._check is None:
            self._check = await self._store.in_thread(ResultCheck.of_run, self._store.store, self._found.manifest)
        return await self._store.in_thread(self._check.checked, calls, entries)

    async def _index_of(self, job: int | str) -> int:
        manifest = self._found.manifest
        text = str(job)
        own = text.removeprefix(f"{manifest.run_id}.")
        if own.isdecimal() and int(own) < manifest.jobs:
            return int(own)
        if self._indices is None:
            self._indices = await self._store.in_thread(_indices_by_id, self._store.store, manifest)
        if text in self._indices:
            return self._indices[text]
        raise NoSuchJob(
            f"run {manifest.run_id} has no job {text!r}: indices go from 0 to {manifest.jobs - 1}; "
            f"parley pending {manifest.run_id} says which wait"
        )

    async def _not_paused(self, index: int) -> Exception:
        """Why a job takes no answers."""
        run_id = self._found.run_id
        answered = await self._ledger.externals.answer(run_id, index, "", [])
        job = f"job {index} of {run_id}"
        match answered.job:
            case "unknown_run":
                return NotPaused(f"run {run_id} is not in this ledger; start it again, then answer")
            case "unknown_job":
                return NoSuchJob(f"{job}: the ledger knows no such job")
            case "finished":
                return NotPaused(f"{job} is finished: parley show {run_id} {index} says how it ended")
            case _:
                return NotPaused(f"{job} does not wait for answers: it has not begun, or goes on (rule S17)")


def pending_job(run_id: str, paused: PausedJob, awaited: Awaited) -> PendingJob | None:
    """The calls of a paused job that have no answer; None when there are none."""
    calls = tuple(
        WaitingCall(call.call_id, call.name, call.arguments, awaited.ends.get(call.call_id))
        for call in paused.calls
        if awaited.calls.get(call.call_id, LATE) is None
    )
    return PendingJob(run_id, paused.index, paused.job_id, paused.paused_at, calls) if calls else None


def _indices_by_id(store: Store, manifest: RunManifest) -> dict[str, int]:
    """The index of each job whose line brings an id along."""
    found: dict[str, int] = {}
    index = 0
    for part in manifest.parts:
        for line in read_part(store, part):
            if (job_id := orjson.loads(line).get("id")) is not None:
                found.setdefault(str(job_id), index)
            index += 1
    return found
