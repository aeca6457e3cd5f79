"""Conversations in a program of one's own: a model, functions as tools, and the loop; no recipe, no worker."""

import inspect
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import structlog

from conversations.errors import ToolsInvalid
from conversations.messages import Message, system, user
from conversations.models.kinds import build_model
from conversations.models.model import Model
from conversations.models.settings import model_choice
from conversations.offered import ever_offered
from conversations.policy.limits import Limits
from conversations.policy.prompts import with_tool_prompts
from conversations.runner import ToolRunner
from conversations.selection import ToolSelection
from conversations.state import State
from engines.engine import ToolEngine
from engines.local.engine import LocalEngine
from engines.local.functions import bound
from engines.local.schemas import tool_of
from engines.multi import MultiToolEngine
from engines.tool import DEFAULT_NAMESPACE, Tool
from engines.toolset import Toolset

log = structlog.get_logger(__name__)

Function = Callable[..., Any]
_FUNCTIONS, _GIVEN = "functions", "given"


@asynccontextmanager
async def conversation(
    said: str | Sequence[Message] = (),
    *,
    model: Model | Mapping[str, Any],
    tools: Sequence[Function | Tool] = (),
    catalogue: Sequence[Function | Tool] = (),
    engine: ToolEngine | None = None,
    instructions: str | None = None,
    limits: Limits | None = None,
    max_iterations: int | None = None,
    tool_choice: Any = None,
    seed: int = 0,
    state: State | None = None,
    closing: Iterable[Any] = (),
) -> AsyncIterator[ToolRunner]:
    """One conversation, ready to be iterated; all that it opened is closed again, however it ends (rule A19).

    `said` is the user's first message or a history, `instructions` the system message before it; a `state` goes on
    from where another runner stopped. `model` is a recipe's `model` block, or a model that the caller opens and closes.
    A function among the tools is run here (plain ones in threads). A `Tool` is answered by `engine`, the caller's, or,
    where that has no such tool, from outside: the conversation pauses for `runner.answer`. `catalogue` holds tools that
    are not offered before `runner.add_tools("name")`. `max_iterations` bounds how often the model is asked. `closing`
    are objects with `aclose` or `close`, called once at the end, the last first; what they raise is logged.

    ToolsInvalid for two tools of one name (rule A17); InvalidTool for a function that can be none.
    """
    workshop = _Workshop.of(tools, catalogue, engine)
    async with AsyncExitStack() as stack:
        for each in closing:
            stack.push_async_callback(_close, each)
        stack.push_async_callback(workshop.functions.close)
        if isinstance(model, Mapping):
            model = build_model(model_choice(dict(model)))
            stack.push_async_callback(model.close)
            await model.open()
        offered = ToolSelection.of(workshop.offered, external=workshop.external)
        if state is None:
            state = State(messages=_beginning(said, instructions, workshop.offered))
        session_id = uuid.uuid4().hex
        names = ever_offered(offered, state.offered).names
        past = {"history": state.history_entries(names)}
        await workshop.engine.setup(session_id, initial_state=past, seed=seed)
        stack.push_async_callback(workshop.engine.teardown, session_id)
        yield ToolRunner(
            model=model,
            engine=workshop.engine,
            session_id=session_id,
            state=state,
            tools=offered,
            limits=_limits(limits or Limits(), max_iterations),
            seed=seed,
            tool_choice=tool_choice,
            catalogue=workshop.catalogue,
        )


@dataclass(frozen=True, slots=True)
class _Workshop:
    """The tools of one conversation and who answers them."""

    offered: list[Tool]
    catalogue: list[Tool]
    functions: LocalEngine
    engine: ToolEngine
    external: frozenset[str]

    @classmethod
    def of(
        cls, tools: Sequence[Function | Tool], catalogue: Sequence[Function | Tool], given: ToolEngine | None
    ) -> Self:
        every = [*tools, *catalogue]
        made = [each if isinstance(each, Tool) else tool_of(each, namespace=DEFAULT_NAMESPACE) for each in every]
        functions = {
            tool.qualified_name: bound(each, tool, said=tool.name)
            for tool, each in zip(made, every, strict=True)
            if not isinstance(each, Tool)
        }
        uses = Counter(tool.qualified_name for tool in made)
        if twins := [name for name in functions if uses[name] > 1]:
            raise ToolsInvalid(f"several tools are named {twins[0]!r}; give one of them another name: @tool(name=…)")
        local = LocalEngine(_toolsets([tool for tool in made if tool.qualified_name in functions]), functions)
        return cls(
            offered=made[: len(tools)],
            catalogue=made[len(tools) :],
            functions=local,
            engine=_joined(local, given),
            external=frozenset(uses) - functions.keys() - _names_in(given),
        )


def _toolsets(tools: Iterable[Tool]) -> list[Toolset]:
    by_namespace: dict[str, list[Tool]] = {}
    for tool in tools:
        by_namespace.setdefault(tool.namespace, []).append(tool)
    return [Toolset(namespace, _FUNCTIONS, tuple(own)) for namespace, own in by_namespace.items()]


def _joined(functions: LocalEngine, given: ToolEngine | None) -> ToolEngine:
    if given is None or not functions.toolsets:
        return functions if given is None else given
    if shared := sorted(functions.toolsets.keys() & given.toolsets.keys()):
        raise ToolsInvalid(f"functions and the engine both have the namespace {shared[0]!r}; @tool(name='other::name')")
    routes = dict.fromkeys(given.toolsets, _GIVEN) | dict.fromkeys(functions.toolsets, _FUNCTIONS)
    return MultiToolEngine({_GIVEN: given, _FUNCTIONS: functions}, routes)


def _names_in(given: ToolEngine | None) -> set[str]:
    toolsets = () if given is None else given.toolsets.values()
    return {tool.qualified_name for toolset in toolsets for tool in toolset.tools}


def _beginning(said: str | Sequence[Message], instructions: str | None, tools: Sequence[Tool]) -> list[Message]:
    history = [user(said)] if isinstance(said, str) else list(said)
    return with_tool_prompts([*([system(instructions)] if instructions else ()), *history], tools)


def _limits(limits: Limits, max_iterations: int | None) -> Limits:
    if max_iterations is None:
        return limits
    if max_iterations < 1:
        raise ValueError(f"max_iterations is how often the model is asked, at least 1; got {max_iterations}")
    return replace(limits, max_turns=max_iterations)


async def _close(each: Any) -> None:
    """Close what a tool holds; the conversation is over, so nobody waits for what this raises."""
    try:
        closed = (getattr(each, "aclose", None) or each.close)()
        if inspect.isawaitable(closed):
            await closed
    except Exception as error:  # noqa: BLE001 - foreign code, at the end of everything
        log.warning("a tool could not be closed", tool=type(each).__name__, cause=f"{type(error).__name__}: {error}")
