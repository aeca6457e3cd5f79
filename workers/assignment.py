"""An assignment: what one job needs to run, made from its run, its line and its checkpoint."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from conversations.messages import Message, system, user
from conversations.policy.limits import Limits
from conversations.recipe import Recipe
from conversations.selection import ToolSelection
from conversations.state import State
from conversations.templates import render
from jobs.job import JobLine, JobReference, seed_of
from workers.checkpoint import Restored
from workers.equipment import Equipment
from workers.open_run import OpenRun


@dataclass(slots=True)
class Assignment:
    """One conversation to make, ready to run."""

    equipment: Equipment
    job: JobReference
    line: JobLine
    seed: int
    tools: ToolSelection
    state: State
    restored: Restored
    teardown_failure: str | None = None

    @property
    def is_resumed(self) -> bool:
        """Say whether an earlier attempt left a checkpoint."""
        return self.restored.state is not None

    @property
    def scratch(self) -> dict[str, Any]:
        """Return what the tools of the session kept in the attempts before."""
        return self.restored.scratch

    @property
    def limits(self) -> Limits:
        """Return the limits of the loop: the job's where it has its own, else the recipe's."""
        return self.equipment.recipe.loop_limits(self.line.max_turns)

    @property
    def tool_choice(self) -> Any:
        """Return what the model is told about choosing tools, None for nothing."""
        return self.line.tool_choice or self.equipment.recipe.conversation.tool_choice

    @property
    def job_id(self) -> str:
        """Return the user's id of the job, or its task id."""
        return self.line.id or self.job.task_id


async def assign(run: OpenRun, job: JobReference, restored: Restored) -> Assignment:
    """Read the job's line and go on from its checkpoint, or begin."""
    equipment = await run.equipment()
    line = await run.job_line(job.index)
    seed = seed_of(line, equipment.recipe.seed, job.index)
    tools = equipment.selector.select(line.tools, line.disabled_tools, seed=seed)
    state = restored.state or _beginning(equipment.recipe, line)
    return Assignment(equipment, job, line, seed, tools, state, restored)


def _beginning(recipe: Recipe, line: JobLine) -> State:
    return State(
        messages=_first_messages(recipe, line), started_at=datetime.now(UTC).isoformat(timespec="milliseconds")
    )


def _first_messages(recipe: Recipe, line: JobLine) -> list[Message]:
    messages: list[Message] = []
    given = [dict(message) for message in line.messages or ()]
    instructions = recipe.conversation.system
    if instructions is not None and not (given and given[0]["role"] in {"system", "developer"}):
        messages.append(system(render(instructions, line.variables)))
    messages += given
    if line.prompt is not None:
        messages.append(user(render(line.prompt, line.variables)))
    return messages
