"""A stored run whose conversations a script played: what fork and replay begin with."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from conversations.models.model import Model
from conversations.roles import RoleTools
from conversations.runner import ToolRunner
from conversations.simulated_user import SimulatedUser
from conversations.state import AWAITING_TOOL_RESULTS, COMPLETED, State
from engines.tool import ToolResult
from engines.wiring import build_engine
from jobs.beginning import beginning
from jobs.job import seed_of
from producer.run_address import FoundRun, find_run
from producer.staged_input import OnBadLine
from producer.stored_lines import StoredLines
from producer.submission import Submission, SubmissionRequest, submit
from results.record import Record
from tests.support.scripted_model import Line, script
from tests.unit.engines.stage import no_speak
from tests.unit.results.made_records import put_shard

JSONObject = dict[str, Any]
SESSION = "session"
RECIPE = """
name: made
model: {provider: offline, model: first}
conversation: {system: "You are {{ name | default('Ada') }}.", max_turns: 5, max_tool_calls: 3}
tools:
  registry:
    - type: inline
      namespace: w
      engine: here
      tools:
        - name: add
          parameters: {type: object, properties: {a: {type: integer}, b: {type: integer}}, required: [a, b]}
        - {name: echo, parameters: {type: object, properties: {text: {type: string}}}}
        - {name: fail, parameters: {type: object, properties: {reason: {type: string}}}}
        - name: hand_over
          parameters: {type: object, properties: {topic: {type: string}}}
          metadata: {takes_control: true}
  engines: {here: {type: local, module: tests.support.counting_tools}}
"""


class MadeRun:
    """One run in a folder."""

    def __init__(
        self, folder: Path, recipe: str = RECIPE, jobs: Sequence[Mapping[str, Any]] = ({"prompt": "hi"},)
    ) -> None:
        path = folder / "recipe.yaml"
        path.write_text(recipe)
        (folder / "jobs.jsonl").write_bytes(b"".join(orjson.dumps(job) + b"\n" for job in jobs))
        request = SubmissionRequest(path, None, str(folder / "runs"), "r1", OnBadLine.ERROR, is_local=True)
        self.submission: Submission = submit(request)
        self.found: FoundRun = find_run("r1", str(folder / "runs"))
        self.shards = 0

    async def play(
        self,
        *lines: Line,
        index: int = 0,
        user_says: Sequence[Line] = (),
        answers: Mapping[str, ToolResult] | None = None,
        **changes: Any,
    ) -> JSONObject:
        """Play one job to its end, and store the record with these changes."""
        state, roles = await self._played(script(*lines), script(*user_says), index, answers or {})
        user = {"simulated_user": state.user}
        fields: JSONObject = {
            "run_id": "r1",
            "job_id": f"job-{index}",
            "index": index,
            "attempt": 1,
            "status": "ok" if state.status == COMPLETED else "failed",
            "messages": state.messages,
            "tools": roles.assistant.native,
            "tool_results": state.tool_results,
            "input_tokens": state.input_tokens,
            "output_tokens": state.output_tokens,
            "model_calls": state.turns,
            "tool_calls": state.tool_calls,
            "model": "first",
            "error": state.error,
            "seed": self.seed(index),
            "metadata": user if state.user else {},
        }
        record = Record(**(fields | changes))
        put_shard(self.found.store, [record], run_id="r1", sequence=self.shards)
        self.shards += 1
        return self.stored(record)

    def stored(self, record: Record) -> JSONObject:
        """The record as readers get it."""
        fields = {name: getattr(record, name) for name in Record.__slots__}
        usage = {name: fields.pop(name) for name in ("input_tokens", "output_tokens", "model_calls", "tool_calls")}
        stored: JSONObject = orjson.loads(orjson.dumps(fields | {"usage": usage}))
        return stored

    def seed(self, index: int) -> int:
        """The seed of a job."""
        return seed_of(StoredLines(self.found).of(index), self.submission.checked.loaded.recipe.seed, index)

    async def _played(
        self, model: Model, user_model: Model, index: int, answers: Mapping[str, ToolResult]
    ) -> tuple[State, RoleTools]:
        checked = self.submission.checked
        recipe, line = checked.loaded.recipe, StoredLines(self.found).of(index)
        settings = recipe.conversation.user
        roles = RoleTools.of(checked.selector, settings, line.tools, line.disabled_tools, seed=self.seed(index))
        state = beginning(recipe, line, roles.assistant)
        engine = build_engine(recipe.tools, checked.registry, speak_for=no_speak)
        await engine.setup(SESSION)
        while True:
            user = SimulatedUser(user_model, settings, "brief", "", 0, "c", engine, SESSION) if settings else None
            runner = ToolRunner(
                model=model, engine=engine, session_id=SESSION, state=state, tools=roles.assistant,
                limits=recipe.loop_limits(line.max_turns), simulated_user=user,
                tool_choice=line.tool_choice or recipe.conversation.tool_choice,
            )  # fmt: skip
            pending = runner.pending_calls()
            runner.answer([answers[str(call.call_id)] for call in pending])
            await runner.until_done()
            if state.status != AWAITING_TOOL_RESULTS:
                break
        await engine.teardown(SESSION)
        return state, roles
