"""One job as a sentence: claim it, set its session up, run the conversation, record it, settle."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

import structlog
from pydantic import ValidationError

from conversations.errors import ConversationError, ModelError
from conversations.runner import ToolRunner
from conversations.state import AWAITING_TOOL_RESULTS, COMPLETED
from conversations.stopping import stopping_when
from engines.errors import EngineError, SessionLost, ToolFailed
from engines.tool import ToolResult
from jobs.errors import BrokerUnreachable, JobsError
from jobs.job import JobReference
from jobs.ledger.claims import Claim, Dropped, Exhausted, Granted, Parked
from results.errors import ResultsError
from workers.assignment import Assignment, assign
from workers.checking import rejected
from workers.checkpoint import CheckpointWriter, restore
from workers.ending import Abandoned, Ended, Ending, Failure, Interrupted, Lost, Paused, Postponed, Waits
from workers.heartbeat import Lease
from workers.open_run import OpenRun
from workers.pausing import pause, resumed
from workers.recording import write_record
from workers.sessions import session_of
from workers.worker import Worker

log = structlog.get_logger(__name__)


async def execute(job: JobReference, worker: Worker) -> str:
    """Do what one task message asks for. Returns what became of the job, for Flower's list."""
    try:
        return await _execute(job, worker)
    except BrokerUnreachable as failure:
        # Whatever was under way is safe: its claim runs out and the job goes on from its checkpoint.
        log.warning("job left to its lease", job=job.task_id, cause=str(failure))
        return "left: broker unreachable"


async def _execute(job: JobReference, worker: Worker) -> str:
    if worker.draining.has_begun:
        await worker.ledger.claims.return_unclaimed(job)
        return "returned"
    match await worker.ledger.claims.claim(job, worker.next_nonce()):
        case Granted(claim, is_cancelled):
            return await _attempt(claim, worker, Ended("cancelled") if is_cancelled else None)
        case Exhausted(claim):
            reason = Failure("attempts_exhausted", f"{claim.strikes} attempts were lost or failed")
            return await _attempt(claim, worker, Ended("dead", reason))
        case Parked():
            return "parked"
        case Dropped(why):
            return why


async def _attempt(claim: Claim, worker: Worker, ending: Ended | None) -> str:
    with worker.metrics.working(), worker.heartbeat.keeping(claim) as lease:
        try:
            return await Attempt(claim, lease, worker).run(ending)
        except asyncio.CancelledError:
            # The time to drain is over, or the task was revoked: the job goes on elsewhere, from its checkpoint.
            await worker.ledger.claims.give_back(claim)
            raise


@dataclass(slots=True)
class Attempt:
    """One attempt at a job, from its claim to its settlement."""

    claim: Claim
    lease: Lease
    worker: Worker
    opened: OpenRun | None = None
    assignment: Assignment | None = None

    async def run(self, ending: Ended | None = None) -> str:
        """Work (unless the ending is known before), record, settle; a failure that may pass postpones the job."""
        outcome = await self._fenced(self._work(ending))
        if isinstance(outcome, Postponed) and self._is_last_attempt(outcome):
            outcome = Ended("failed", outcome.reason)
        if isinstance(outcome, Waits):
            outcome = await self._fenced(self._pause(outcome))
        if isinstance(outcome, Ended):
            outcome = await self._fenced(self._record(outcome))
        return await self._conclude(outcome)

    async def _fenced(self, step: Awaitable[Ending]) -> Ending:
        """Turn every failure into an ending: one job's trouble never touches the others."""
        try:
            return await step
        except ModelError as failure:
            reason = Failure(failure.type, str(failure))
            return Postponed(reason) if failure.retryable else Ended("failed", reason)
        except (ResultsError, BrokerUnreachable) as failure:
            return Postponed(Failure("infrastructure", str(failure)), strikes=0)
        except Abandoned as abandoned:
            return abandoned.ending
        except SessionLost as failure:
            return Postponed(Failure("session_lost", str(failure)))
        except ToolFailed as failure:  # a backend that gives no session: the tools' own failures are results
            return Postponed(Failure(f"backend_{failure.error_type}", str(failure)))
        except (ConversationError, EngineError, ValidationError) as failure:
            return Postponed(Failure("configuration", str(failure)))  # another worker may be set up rightly
        except JobsError as failure:
            return Postponed(Failure("input", str(failure)))
        except Exception as failure:
            log.exception("a job failed in a way nobody foresaw", job=self.claim.job.task_id)
            return Postponed(Failure("internal", f"{type(failure).__name__}: {failure}"))

    def _is_last_attempt(self, postponed: Postponed) -> bool:
        if self.opened is None or postponed.strikes == 0:
            return False  # without its run, or its store, not even a record can be written
        return self.claim.strikes + postponed.strikes >= self.opened.manifest.max_attempts

    async def _work(self, ending: Ended | None) -> Ending:
        self.opened = await self.worker.runs.open(self.claim.job.run_id)
        restored = await restore(self.worker.ledger.checkpoints, self.claim)
        answers: dict[str, ToolResult] = {}
        if restored.state is None and self.claim.attempt > 1:
            restored, answers = await resumed(self.worker.ledger.externals, self.opened.store, self.claim.job)
        self.assignment = await assign(self.opened, self.claim.job, restored, answers)
        return ending or await self._converse(self.assignment)

    async def _converse(self, assignment: Assignment) -> Ending:
        state = assignment.state
        ledger, seconds = self.worker.ledger.sessions, self.worker.settings.teardown_seconds
        async with session_of(assignment, self.claim, ledger, seconds) as session:
            checkpoint = CheckpointWriter(self.worker.ledger.checkpoints, self.claim, state, assignment.restored)
            runner = ToolRunner(
                model=assignment.equipment.model,
                engine=assignment.equipment.engine,
                session_id=session.id,
                conversation_id=self.claim.job.task_id,  # the same in every attempt: model servers cache by it
                state=state,
                tools=assignment.tools,
                limits=assignment.limits,
                seed=assignment.model_seed,
                tool_choice=assignment.tool_choice,
                simulated_user=assignment.simulated_user(session.id),
            )
            runner.answer(assignment.answers_to(runner.pending_calls()))
            with stopping_when(lambda: self.lease.is_lost or self.lease.is_cancelled):
                async for _ in runner:
                    if self.lease.is_lost or not await checkpoint.save(await session.scratch()):
                        session.goes_on = True
                        return Lost()
                    if self.lease.is_cancelled:
                        return Ended("cancelled")
                    if self.worker.draining.has_begun:
                        session.goes_on = True
                        return Interrupted()
            if state.status == AWAITING_TOOL_RESULTS:
                return Waits(tuple(runner.pending_calls()), await session.scratch())
        if state.status != COMPLETED:
            return Ended("failed", Failure.of(state.error))
        rejection = await rejected(assignment)  # a judge that fails is asked again in the next attempt
        return Ended("ok") if rejection is None else Ended("failed", rejection)

    async def _record(self, ended: Ended) -> Ending:
        """Make the record durable, then settle. Never the other way round: a job done without its record is lost."""
        if self.lease.is_lost or self.opened is None:
            return Lost()
        with self.worker.metrics.recording():
            usage = await write_record(self.opened, self.claim, self.assignment, ended, self.lease)
        if usage is None:
            return Lost()
        is_ours = await self.worker.ledger.claims.settle(self.claim, ended.status, usage)
        return ended if is_ours else Lost()

    async def _pause(self, waits: Waits) -> Ending:
        """Make the state durable, then give everything up. Never the other way round: answers would find nothing."""
        if self.lease.is_lost or self.opened is None or self.assignment is None:
            return Lost()
        is_ours = await pause(self.worker.ledger.externals, self.opened, self.claim, self.assignment, waits)
        return Paused() if is_ours else Lost()

    async def _conclude(self, outcome: Ending) -> str:
        match outcome:
            case Ended(status, error):
                return f"{status}: {error.type}" if error else status
            case Lost():
                log.warning("claim lost: the job is another attempt's now", job=self.claim.job.task_id)
                return "lost"
            case Paused():
                return "paused"
            case Waits():
                raise AssertionError("what waits is paused before it is concluded")
            case Interrupted():
                await self.worker.ledger.claims.give_back(self.claim)
                return "handed back"
            case Postponed(reason, strikes):
                return await self._postpone(reason, strikes)

    async def _postpone(self, reason: Failure, strikes: int) -> str:
        delay = self.worker.retry_delay_seconds(self.claim)
        log.warning(
            "job postponed", job=self.claim.job.task_id, type=reason.type, cause=reason.message, seconds=round(delay, 1)
        )
        await self.worker.ledger.claims.give_back(self.claim, delay_seconds=delay, strikes=strikes)
        return f"later: {reason.type}"
