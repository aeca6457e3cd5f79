"""Checking: a finished conversation held against the recipe's checks before it is recorded."""

from conversations.checks.finished import Finished
from conversations.checks.kinds import findings_of
from workers.assignment import Assignment
from workers.ending import Failure


async def rejected(assignment: Assignment) -> Failure | None:
    """Why the conversation is not to be kept, None when it is; what the checks noted goes into the record."""
    if not assignment.equipment.checks:
        return None
    state = assignment.state
    finished = Finished(
        state.messages, state.tool_results, assignment.tools, state.turns, assignment.seed, assignment.job.task_id
    )
    findings = await findings_of(assignment.equipment.checks, finished)
    assignment.notes = findings.notes or {}
    if findings.rejected_by is None:
        return None
    return Failure(f"rejected:{findings.rejected_by}", findings.reason)
