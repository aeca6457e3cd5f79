"""An assignment: what one job needs to run, made from its run, its line and its checkpoint."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from conversations.offered import ever_offered
from conversations.policy.limits import Limits
from conversations.recipe import Recipe
from conversations.roles import RoleTools
from conversations.selection import ToolSelection
from conversations.simulated_user import SimulatedUser
from conversations.state import State
from conversations.templates import render
from engines.tool import ToolCall, ToolResult
from jobs.beginning import beginning
from jobs.job import JobLine, JobReference, model_seed_of, seed_of
from workers.checkpoint import Restored
from workers.equipment import Equipment
from workers.open_run import OpenRun

_NO_ANSWERS: Mapping[str, ToolResult] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Before:
    """What the turns used that a forked job begins with: its parent's record counts it."""

    turns: int = 0
    tool_calls: int = 0
    results: int = 0


@dataclass(slots=True)
class Assignment:
    """One conversation to make, ready to run."""

    equipment: Equipment
    job: JobReference
    line: JobLine
    seed: int
    roles: RoleTools
    state: State
    restored: Restored
    teardown_failure: str | None = None
    answers: Mapping[str, ToolResult] = field(default_factory=dict)  # from outside, by call id
    notes: dict[str, Any] = field(default_factory=dict)  # what the checks want to be kept with the record

    @property
    def model_seed(self) -> int:
        """Return the seed of what the models say; all else that chance decides comes from `seed`."""
        return model_seed_of(self.line, self.seed)

    @property
    def before(self) -> Before:
        """Return what is not this job's own."""
        history = self.line.history
        return Before() if history is None else Before(history.turns, history.tool_calls, len(history.tool_results))

    @property
    def is_resumed(self) -> bool:
        """Say whether an earlier attempt left a checkpoint."""
        return self.restored.state is not None

    @property
    def scratch(self) -> dict[str, Any]:
        """Return what the tools of the session kept in the attempts before."""
        return self.restored.scratch

    @property
    def tools(self) -> ToolSelection:
        """Return what the assistant is offered at the beginning."""
        return self.roles.assistant

    @property
    def ever_offered(self) -> ToolSelection:
        """Return every tool that the assistant was offered at some time."""
        return ever_offered(self.tools, self.state.offered)

    @property
    def namespaces(self) -> set[str]:
        """Return the namespaces that the conversation may touch."""
        return {tool.namespace for tool in self.roles.tools}

    def history_entries(self) -> list[dict[str, Any]]:
        """Return what the engines were asked in the attempts before."""
        user_names = self.roles.user.names if self.roles.user is not None else None
        return self.state.history_entries(self.ever_offered.names, user_names)

    def answers_to(self, calls: Iterable[ToolCall]) -> list[ToolResult]:
        """Return what came from outside for these calls."""
        return [self.answers[str(call.call_id)] for call in calls if call.call_id in self.answers]

    def simulated_user(self, session_id: str) -> SimulatedUser | None:
        """Return who plays the user, None when nobody does."""
        settings, model = self.equipment.recipe.conversation.user, self.equipment.user_model
        if settings is None or model is None:
            return None
        return SimulatedUser(
            model=model,
            settings=settings,
            persona=render(settings.persona_for(self.seed), self.line.variables),
            goal=render(settings.goal or "", self.line.variables),
            seed=self.model_seed,
            conversation_id=self.job.task_id,
            engine=self.equipment.engine,
            session_id=session_id,
            tools=self.roles.user,
            limits=self.limits,
        )

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


async def assign(
    run: OpenRun, job: JobReference, restored: Restored, answers: Mapping[str, ToolResult] = _NO_ANSWERS
) -> Assignment:
    """Read the job's line and go on from its checkpoint, with the answers that came from outside, or begin."""
    equipment = await run.equipment()
    line = await run.job_line(job.index)
    seed = seed_of(line, equipment.recipe.seed, job.index)
    user = equipment.recipe.conversation.user
    roles = RoleTools.of(equipment.selector, user, line.tools, line.disabled_tools, seed=seed)
    state = restored.state or _beginning(equipment.recipe, line, roles.assistant)
    return Assignment(equipment, job, line, seed, roles, state, restored, answers=answers)


def _beginning(recipe: Recipe, line: JobLine, tools: ToolSelection) -> State:
    state = beginning(recipe, line, tools)
    state.started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return state
