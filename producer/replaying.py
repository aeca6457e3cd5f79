"""Replaying: the real loop runs a recorded conversation again, on the answers and results of its record."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from conversations.policy.limits import Limits
from conversations.recipe import Recipe
from conversations.recipe_files import recipe_from_json
from conversations.recorded import (
    RecordedEngine,
    RecordedModel,
    RecordEnds,
    recorded_replies,
    recorded_user,
    results_by_call,
)
from conversations.roles import RoleTools
from conversations.runner import ToolRunner
from conversations.selection import Selector
from conversations.simulated_user import SimulatedUser
from conversations.state import AWAITING_TOOL_RESULTS, State
from engines.loading import load_registry
from jobs.beginning import beginning
from jobs.job import JobLine
from jobs.run import read_recipe
from producer.fork_point import model_turns
from producer.run_address import FoundRun

JSONObject = dict[str, Any]
_SESSION = "replay"


@dataclass(frozen=True, slots=True)
class Replayed:
    """What the loop made of a record; `stopped` says what it asked for that is not recorded."""

    state: State
    tools: list[JSONObject]
    stopped: str | None


@dataclass(frozen=True, slots=True)
class Replaying:
    """Replays the conversations of one run, with the recipe that it has stored; no reference is resolved."""

    recipe: Recipe
    selector: Selector

    @classmethod
    def of(cls, found: FoundRun) -> Self:
        """Load the tools; no engine and no model is built."""
        recipe = recipe_from_json(read_recipe(found.store, found.manifest))
        registry = load_registry(recipe.tools, folder=Path(), environment={})
        return cls(recipe, Selector(registry, recipe.tools.sample, recipe.tools.permissions))

    async def replay(self, record: JSONObject, line: JobLine) -> Replayed:
        """Run the loop from the job's beginning as far as the record reaches."""
        conversation = self.recipe.conversation
        roles = RoleTools.of(
            self.selector, conversation.user, line.tools, line.disabled_tools, seed=int(record["seed"])
        )
        state = beginning(self.recipe, line, roles.assistant)
        engine = RecordedEngine(results_by_call(record["tool_results"]))
        model, user = _model_of(record, line), self._user_of(record, line, engine)
        stopped: str | None = None
        while stopped is None:
            runner = ToolRunner(
                model=model,
                engine=engine,
                session_id=_SESSION,
                state=state,
                tools=roles.assistant,
                limits=self._limits_of(line),
                tool_choice=line.tool_choice or conversation.tool_choice,
                simulated_user=user,
            )
            try:
                runner.answer([engine.result_of(call) for call in runner.pending_calls()])
                await runner.until_done()
            except RecordEnds as ends:
                stopped = str(ends)
            if state.status != AWAITING_TOOL_RESULTS:
                break
        return Replayed(state, roles.assistant.native, stopped)

    def _limits_of(self, line: JobLine) -> Limits:
        """The job's limits; time is not one of them, since it runs differently today."""
        return replace(self.recipe.loop_limits(line.max_turns), max_seconds=None)

    def _user_of(self, record: JSONObject, line: JobLine, engine: RecordedEngine) -> SimulatedUser | None:
        settings = self.recipe.conversation.user
        if settings is None:
            return None
        known = record["metadata"].get("simulated_user", {})
        before = 0 if line.history is None else int(line.history.user.get("turns", 0))
        count = int(known.get("turns", 0)) - before
        tokens = (int(known.get("input_tokens", 0)), int(known.get("output_tokens", 0)))
        return SimulatedUser(
            model=recorded_user(record["messages"], count, settings.stop, tokens),
            settings=settings,
            persona=str(known.get("persona", "")),
            goal="",
            seed=0,
            conversation_id=_SESSION,
            engine=engine,
            session_id=_SESSION,
        )


def _model_of(record: JSONObject, line: JobLine) -> RecordedModel:
    kept = 0 if line.history is None else line.history.turns
    turns = model_turns(record["messages"], line)[kept:]
    usage, error = record["usage"], record["error"] or {}
    tokens = (usage["input_tokens"], usage["output_tokens"])
    return RecordedModel(recorded_replies(record["messages"], turns, error.get("type"), tokens), str(record["model"]))
