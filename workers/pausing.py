"""Pausing: a conversation that waits for answers from outside holds nothing, and goes on with them on any worker."""

from datetime import UTC, datetime
from typing import Any

import structlog

from conversations.errors import CheckpointUnusable
from conversations.state import State
from engines.history import EXTERNAL
from engines.tool import ErrorType, ToolResult
from jobs.errors import InputCorrupt
from jobs.job import JobReference
from jobs.ledger.claims import Claim
from jobs.ledger.externals import LATE, Externals
from jobs.paused import PausedJob, PendingCall, paused_key, read_answers, read_paused
from jobs.run import route_number
from results.async_store import AsyncStore
from workers.assignment import Assignment
from workers.checkpoint import Restored
from workers.ending import Waits
from workers.open_run import OpenRun
from workers.webhook import tell

log = structlog.get_logger(__name__)


async def pause(ledger: Externals, run: OpenRun, claim: Claim, assignment: Assignment, waits: Waits) -> bool:
    """Store the state, then let the job wait; False when the claim was lost to a newer attempt."""
    external = assignment.equipment.recipe.conversation.external
    calls = tuple(
        PendingCall(str(call.call_id), call.qualified_name, call.arguments, external.deadline_seconds)
        for call in waits.calls
    )
    job = PausedJob(
        index=claim.job.index,
        attempt=claim.attempt,
        job_id=assignment.job_id,
        route=route_number(run.manifest.routes, claim.job.namespaces),
        paused_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        calls=calls,
        state=assignment.state.to_json(),
        scratch=waits.scratch,
    )
    key = paused_key(claim.job.run_id, claim.job.index, claim.attempt)
    data = job.encoded()
    await run.store.in_thread(run.store.store.put, key, data)
    is_ours = await ledger.pause(claim, key, [(call.call_id, call.seconds) for call in calls])
    webhook = assignment.equipment.webhook
    if is_ours and webhook is not None:
        run.in_background(tell(webhook, claim.job.run_id, job))
    return is_ours


async def resumed(ledger: Externals, store: AsyncStore, job: JobReference) -> tuple[Restored, dict[str, ToolResult]]:
    """The state of a job that paused, and the answers to its calls; nothing for one that never did."""
    awaited = await ledger.awaited(job)
    if awaited is None:
        return Restored(None, {}, 0), {}
    paused = await store.in_thread(read_paused, store.store, awaited.state_key)
    try:
        state = State.from_json(paused.state)
    except CheckpointUnusable as failure:
        raise InputCorrupt(f"{awaited.state_key}: {failure}") from failure
    pending = {call.call_id: call for call in paused.calls}
    answers: dict[str, ToolResult] = {}
    for key in {key for call_id, key in awaited.calls.items() if key not in {None, LATE} and call_id in pending}:
        for call_id, result in (await store.in_thread(read_answers, store.store, str(key))).items():
            if awaited.calls.get(call_id) == key and call_id in pending:
                answers[call_id] = _result_of(pending[call_id], result)
    for call_id, call in pending.items():
        if awaited.calls.get(call_id) == LATE:
            answers[call_id] = _late(call)
    log.debug("job resumed", job=job.task_id, answers=len(answers))
    return Restored(state, paused.scratch, 0, is_whole=True), answers


def _result_of(call: PendingCall, result: dict[str, Any]) -> ToolResult:
    """What somebody outside says a call came to."""
    error = result.get("error")
    metadata = {EXTERNAL: True, **result.get("metadata", {})}
    if error is None:
        return ToolResult(call.call_id, call.name, result.get("result"), metadata=metadata)
    return ToolResult(call.call_id, call.name, None, str(error), ErrorType.external, metadata)


def _late(call: PendingCall) -> ToolResult:
    within = f" within {call.seconds:g} seconds" if call.seconds is not None else ""
    message = f"no answer came from outside{within}"
    return ToolResult(call.call_id, call.name, None, message, ErrorType.timeout, {EXTERNAL: True})
