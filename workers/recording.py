"""Recording: from how a conversation ended to its line in a shard."""

from datetime import UTC, datetime
from typing import Any

from conversations.state import State
from jobs.ledger.claims import Claim, Usage
from results.record import Record, encode_record, entry_of
from workers.assignment import Assignment
from workers.ending import Ended
from workers.open_run import OpenRun


async def write_record(run: OpenRun, claim: Claim, assignment: Assignment | None, ending: Ended) -> Usage:
    """Write the job's record and return, once it is durable, what the conversation used."""
    record = _record(claim, assignment, ending)
    await run.sink.write(encode_record(record), entry_of(record))
    return Usage(record.input_tokens, record.output_tokens, record.model_calls, record.tool_calls)


def _record(claim: Claim, assignment: Assignment | None, ending: Ended) -> Record:
    state = assignment.state if assignment else State()
    return Record(
        run_id=claim.job.run_id,
        job_id=assignment.job_id if assignment else claim.job.task_id,
        index=claim.job.index,
        attempt=claim.attempt,
        status=ending.status,
        messages=state.encoded_messages(),
        tools=assignment.tools.encoded if assignment else (),
        tool_results=state.encoded_results(),
        input_tokens=state.input_tokens,
        output_tokens=state.output_tokens,
        model_calls=state.turns,
        tool_calls=state.tool_calls,
        model=assignment.equipment.model.model_id if assignment else None,
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
    if assignment.teardown_failure:
        metadata["teardown"] = f"failed: {assignment.teardown_failure}"
    return metadata
