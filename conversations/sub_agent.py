"""A sub-agent: another recipe, ready to hold a whole conversation for each call of the tool that it is."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from conversations.checks.finished import Check, Finished
from conversations.checks.kinds import findings_of
from conversations.errors import ConversationError, ModelError, TemplateInvalid
from conversations.messages import Message, system, text_of, user
from conversations.models.model import Model, ModelRequest
from conversations.models.speaking import error_type_of
from conversations.policy.dedup import DUPLICATE_OF
from conversations.policy.prompts import with_tool_prompts
from conversations.recipe import Recipe
from conversations.runner import ToolRunner
from conversations.selection import Selector, ToolSelection
from conversations.state import AWAITING_TOOL_RESULTS, COMPLETED, State
from conversations.stopping import is_stopped
from conversations.templates import render
from engines.chance import derive_seed
from engines.converse import Brief, Conversed
from engines.engine import ToolEngine
from engines.errors import EngineError, SessionLost, ToolFailed
from engines.plain import compact
from engines.recipes.sub_agent import USAGE, usage_by_tool
from engines.tool import ErrorType

log = structlog.get_logger(__name__)

_TEARDOWN_SECONDS = 10.0
_SEED_RANGE = 2**31
_OVER_ITS_LIMITS = frozenset({"max_turns", "budget"})
_FORM = "\n\nEnd with one JSON value that fits this JSON Schema, and nothing around it:\n"
_SAY_IT_AGAIN = "Now give your result as one JSON value that fits the schema, and nothing around it."


@dataclass(frozen=True, slots=True)
class HeldRecipe:
    """A recipe with its model, its engines and its tools; see :class:`engines.converse.Converse`.

    `model` is opened by whoever made it; the engines are this one's.
    """

    recipe: Recipe
    model: Model
    engine: ToolEngine
    selector: Selector
    checks: Sequence[Check] = ()

    async def open(self) -> None:
        """Open its engines."""
        await self.engine.open()

    async def close(self) -> None:
        """Close them."""
        await self.engine.close()

    async def __call__(self, brief: Brief) -> Conversed:
        """Hold one conversation on a session of its own; whatever it cannot come to an end by is told."""
        tools = self.selector.select(None, seed=brief.seed)
        state = State()
        try:
            state.append(*with_tool_prompts(first_messages(self.recipe, brief), tools.tools))
            async with self._session(brief, tools):
                problem = await self._conversed(brief, state, tools)
        except ModelError as error:
            problem = (error_type_of(error), f"the sub-agent's model failed: {error.message}")
        except ToolFailed as error:
            problem = (error.error_type, f"the sub-agent's tools cannot be set up: {error.message}")
        except SessionLost as error:
            problem = (ErrorType.network, f"the sub-agent failed: {error}")
        except TemplateInvalid as error:
            problem = (ErrorType.validation, str(error))
        except (ConversationError, EngineError) as error:
            problem = (ErrorType.execution, f"the sub-agent failed: {error}")
        return _told(state, problem)

    @asynccontextmanager
    async def _session(self, brief: Brief, tools: ToolSelection) -> AsyncIterator[None]:
        namespaces = {tool.namespace for tool in tools.tools}
        await self.engine.setup(brief.session_id, auxdata=brief.auxdata, seed=brief.seed, namespaces=namespaces)
        try:
            yield
        finally:
            try:
                async with asyncio.timeout(_TEARDOWN_SECONDS):
                    await self.engine.teardown(brief.session_id)
            except Exception as failure:  # noqa: BLE001  # a backend that does not let go must not cost the result
                log.warning("a sub-agent's session was not torn down", session=brief.session_id, cause=str(failure))

    async def _conversed(self, brief: Brief, state: State, tools: ToolSelection) -> tuple[ErrorType, str] | None:
        """Run the loop; what is wrong with how it ended, None for nothing."""
        name = f"sub-agent.{brief.seed:x}"  # the same in every attempt: model servers cache by it
        runner = ToolRunner(
            model=self.model,
            engine=self.engine,
            session_id=brief.session_id,
            conversation_id=name,
            state=state,
            tools=tools,
            limits=self.recipe.loop_limits(),
            seed=brief.seed,
            tool_choice=self.recipe.conversation.tool_choice,
        )
        async for _ in runner:
            if is_stopped():  # the claim is another attempt's by now, or the job was cancelled: no further call
                return ErrorType.execution, "the sub-agent was stopped with its job"
        if (problem := _problem_of(state)) is not None:
            return problem
        finished = Finished(state.messages, state.tool_results, tools, state.turns, brief.seed, name)
        findings = await findings_of(self.checks, finished)
        if findings.rejected_by is not None:
            return ErrorType.execution, f"the sub-agent's check {findings.rejected_by} failed: {findings.reason}"
        if brief.is_result is not None and not brief.is_result(text_of(state.messages[-1])):
            await self._say_it_in_form(brief, state, name)
        return None

    async def _say_it_in_form(self, brief: Brief, state: State, name: str) -> None:
        """Ask once more, in a way that leaves the model no other form."""
        state.append(user(_SAY_IT_AGAIN))
        request = ModelRequest(
            messages=state.messages,
            encoded_messages=state.encoded_messages(),
            response_format=brief.response_format,
            seed=derive_seed(brief.seed, "form") % _SEED_RANGE,
            session_id=name,
        )
        reply = await self.model.ask(request)
        tokens = {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
        state.append_reply(reply.message, finish_reason=reply.finish_reason, **tokens)


def first_messages(recipe: Recipe, brief: Brief) -> list[Message]:
    """The beginning: what the recipe says to its model, and the prompt, both filled in with the call's arguments."""
    instructions = recipe.conversation.system
    messages = [] if instructions is None else [system(render(instructions, brief.arguments))]
    prompt = render(brief.prompt, brief.arguments)
    if brief.response_format is not None:
        prompt += _FORM + compact(brief.response_format["json_schema"]["schema"])
    return [*messages, user(prompt)]


def usage_of(state: State) -> dict[str, int]:
    """What a conversation used, that of its own sub-agents included."""
    own = dict(
        zip(USAGE, (state.turns, state.tool_calls, state.input_tokens, state.output_tokens), strict=True),
    )
    for below in sub_agents_of(state).values():
        for name in USAGE:
            own[name] += below[name]
    return own


def sub_agents_of(state: State) -> Mapping[str, Mapping[str, Any]]:
    """What the sub-agents of a conversation used, by their tools' names."""
    return usage_by_tool(state.tool_results, without=(DUPLICATE_OF, "cached"))


def _problem_of(state: State) -> tuple[ErrorType, str] | None:
    if state.status == AWAITING_TOOL_RESULTS:
        return ErrorType.external, "the sub-agent waits for somebody outside, and nobody can answer it there"
    if state.status != COMPLETED:
        error = state.error or {"type": "unknown", "message": "it ended without saying why"}
        kind = ErrorType.limit if error["type"] in _OVER_ITS_LIMITS else ErrorType.execution
        return kind, f"the sub-agent ended with {error['type']}: {error['message']}"
    if not text_of(state.messages[-1]).strip():
        return ErrorType.execution, "the sub-agent ended without a word"
    return None


def _told(state: State, problem: tuple[ErrorType, str] | None) -> Conversed:
    usage, messages = usage_of(state), list(state.messages)
    if problem is None:
        return Conversed(text_of(messages[-1]), usage=usage, messages=messages)
    error_type, error = problem
    return Conversed(error=error, error_type=error_type, usage=usage, messages=messages)
