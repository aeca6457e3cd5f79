"""Recording: from how a conversation ended to its line in a shard."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import structlog

from conversations.models.choosing import model_id_for
from conversations.policy.evaluation import EVALUATION_CHECKS, evaluation_checks
from conversations.state import State
from conversations.sub_agent import sub_agents_of
from jobs.ledger.claims import Claim, Usage
from results.errors import ShardNotWritten
from results.record import Record, encode_record, entry_of
from workers.assignment import Assignment, Before
from workers.ending import Ended
from workers.heartbeat import Lease
from workers.open_run import OpenRun

log = structlog.get_logger(__name__)

PERMIT_LINGER_SECONDS = 0.1  # a record that holds permits waits less for its neighbours: others wait for its permits
REWRITE_SECONDS = 5.0


async def write_record(
    run: OpenRun, claim: Claim, assignment: Assignment | None, ending: Ended, lease: Lease
) -> Usage | None:
    """Write the job's record and return, once it is durable, what the conversation used.

    None when the claim was lost while the store was away.
    """
    record = _record(claim, assignment, ending)
    line, entry = encode_record(record), entry_of(record)
    linger_seconds = PERMIT_LINGER_SECONDS if claim.job.namespaces else None
    while True:
        try:
            await run.sink.write(line, entry, linger_seconds=linger_seconds)
            break
        except ShardNotWritten as failure:
            # The job keeps its slot: a store that is away so stops this process from taking more.
            log.warning("record not stored yet", job=claim.job.task_id, cause=str(failure))
            if lease.is_lost:
                return None
            await asyncio.sleep(REWRITE_SECONDS)
    return Usage(record.input_tokens, record.output_tokens, record.model_calls, record.tool_calls)


def _record(claim: Claim, assignment: Assignment | None, ending: Ended) -> Record:
    state = assignment.state if assignment else State()
    before = assignment.before if assignment else Before()
    return Record(
        run_id=claim.job.run_id,
        job_id=assignment.job_id if assignment else claim.job.task_id,
        index=claim.job.index,
        attempt=claim.attempt,
        status=ending.status,
        messages=state.encoded_messages(),
        tools=assignment.ever_offered.encoded if assignment else (),
        tool_results=state.encoded_results(),
        input_tokens=state.input_tokens,
        output_tokens=state.output_tokens,
        model_calls=state.turns - before.turns,
        tool_calls=state.tool_calls - before.tool_calls,
        model=model_id_for(assignment.equipment.model, claim.job.task_id) if assignment else None,
        error=ending.error.to_dict() if ending.error else None,
        seed=assignment.seed if assignment else None,
        started_at=state.started_at,
        finished_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        metadata=_metadata(assignment),
    )


def _metadata(assignment: Assignment | None) -> dict[str, Any]:
    if assignment is None:
        return {}
    metadata = dict(assignment.line.metadata)
    wanted = {tool.qualified_name: tool.metadata.get(EVALUATION_CHECKS) or () for tool in assignment.ever_offered.tools}
    if checks := evaluation_checks(assignment.state.tool_results, wanted):
        metadata[EVALUATION_CHECKS] = checks
    if assignment.notes:
        metadata["checks"] = assignment.notes
    if user := assignment.state.user:
        kept = ("persona", "turns", "model_calls", "input_tokens", "output_tokens", "asides")
        metadata["simulated_user"] = {key: user[key] for key in kept if key in user}
    own_results = assignment.state.tool_results[assignment.before.results :]
    if sub_agents := sub_agents_of(State(tool_results=own_results)):
        metadata["sub_agents"] = sub_agents
    if assignment.teardown_failure:
        metadata["teardown"] = f"failed: {assignment.teardown_failure}"
    return metadata
