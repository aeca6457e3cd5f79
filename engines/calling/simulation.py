"""What becomes of a call that is only simulated: rehearsed, made all the same, refused, or played (decision 8)."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from enum import Enum
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from engines.calling.answering import Admitted, Answering
from engines.calling.effects import Effects
from engines.calling.prepared import PreparedTool
from engines.chance import derive_seed
from engines.history import History
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall, ToolResult

if TYPE_CHECKING:
    from engines.engine import ToolEngine

LIVE = "live"
REFUSE = "refuse"
SIMULATED_BY = "simulated_by"  # the metadata key of a result that another engine made up; it says which


class Way(Enum):
    """How a call is simulated."""

    make = "make"
    """Made on a copy of the session: what it does to the session is rolled back, what it does beyond is done."""
    refuse = "refuse"
    stand_in = "stand in"


def way_of(prepared: PreparedTool, effects: Effects) -> Way:
    """Return how a tool is simulated: by what it may change, and by what its toolset says of its writers."""
    if prepared.is_read_only or effects is Effects.nothing:
        return Way.make
    match prepared.toolset.simulate:
        case None:
            return Way.refuse if effects is Effects.backend else Way.make
        case "live":
            return Way.make
        case "refuse":
            return Way.refuse
        case _:
            return Way.stand_in


def stand_in_named_by(simulate: str | None) -> str | None:
    """Return the engine that a toolset's `simulate` names, None when it names none."""
    return None if simulate in {None, LIVE, REFUSE} else simulate


class Simulation:
    """One simulated batch on a rehearsal's copy of a session; stand-ins have a session of their own for as long."""

    def __init__(self, answering: Answering, effects: Effects, stand_ins: "Mapping[str, ToolEngine]") -> None:
        self._answering = answering
        self._effects = effects
        self._stand_ins = stand_ins
        self._histories: dict[str, History] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def answer(self, session: Session, admitted: Admitted) -> ToolResult:
        """Answer one call as its tool is simulated."""
        match way_of(admitted.prepared, self._effects):
            case Way.make:
                return await self._answering.answer(session, admitted)
            case Way.stand_in:
                play = partial(self._played, str(admitted.prepared.toolset.simulate))
                return await self._answering.answer(session, admitted, call=play)
            case Way.refuse:
                return _refusal(admitted.call)

    async def _played(self, name: str, session: Session, call: ToolCall, tool: Tool) -> ToolResult:
        """Let the stand-in answer, which sees all that the session has come to by now."""
        engine = self._stand_ins[name]
        if name not in self._histories:
            history = session.history.branch()
            seed = derive_seed("stand-in", session.seed, name)
            await engine.setup(session.id, auxdata=session.auxdata, seed=seed, history=history)
            self._stack.push_async_callback(engine.teardown, session.id)
            self._histories[name] = history
        self._histories[name].rebase()
        (result,) = await engine.execute(session.id, [call])
        return replace(result, metadata={**result.metadata, SIMULATED_BY: name})


def _refusal(call: ToolCall) -> ToolResult:
    message = (
        f"not run: this is a simulation, and {call.qualified_name!r} may change what is real; the recipe may say "
        f"namespaces.{call.namespace}.simulate: live, or name an lm engine that plays it"
    )
    return ToolResult.failed(call, ErrorType.permission, message)
