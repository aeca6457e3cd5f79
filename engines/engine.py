"""The contract of every engine: sessions and their calls; what stands around a call is in `answering` and `lanes`."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from engines.calling.answering import Answering
from engines.calling.attempt import Pause, paused
from engines.calling.effects import Effects
from engines.calling.faults import ErrorCategory, faulty_result
from engines.calling.lanes import carried_out
from engines.calling.prepared import PreparedTools
from engines.calling.result_cache import SharedCache, caches_of
from engines.calling.simulation import Simulation
from engines.history import History
from engines.plain import JSONObject
from engines.session import ActiveSessions, Session
from engines.tool import Tool, ToolCall, ToolResult
from engines.toolset import Toolset

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class ToolEngine(ABC):
    """Answers tool calls. Variants write `_call`, and `_open_session`/`_close_session` where they hold something.

    Batches of one session run in order; sessions run beside each other. All methods are for one event loop.
    """

    effects: ClassVar[Effects] = Effects.backend
    """What calls may change, for a kind of engine; the safe one where it does not say."""

    def __init__(
        self,
        toolsets: Iterable[Toolset] = (),
        *,
        error_categories: Sequence[ErrorCategory] = (),
        shared_cache: SharedCache | None = None,
        cache_scope: str = "",
        stand_ins: "Mapping[str, ToolEngine]" = _NOTHING,
        pause: Pause = paused,
    ) -> None:
        """`stand_ins` are the engines that toolsets name under `simulate`; `cache_scope` tells accounts apart."""
        self.toolsets: Mapping[str, Toolset] = MappingProxyType({each.namespace: each for each in toolsets})
        self.stand_ins = stand_ins
        self._error_categories = tuple(error_categories)
        self._sessions = ActiveSessions()
        tools = PreparedTools(self.toolsets.values(), self._depends_on_session)
        self._answering = Answering(
            tools,
            self._call,
            faulty_result=self._faulty_result,
            error_categories=self._error_categories,
            caches=caches_of(tools, scope=cache_scope, shared=shared_cache),
            pause=pause,
        )

    # The life of the worker process

    async def open(self) -> None:  # noqa: B027 - most engines have nothing to do here
        """Make ready what all sessions share (pools, connections)."""

    async def close(self) -> None:  # noqa: B027 - most engines have nothing to do here
        """Give it back."""

    # The life of a session

    async def setup(
        self,
        session_id: str,
        *,
        initial_state: Mapping[str, Any] | None = None,
        auxdata: Mapping[str, Any] = _NOTHING,
        seed: int = 0,
        history: History | None = None,
        namespaces: Collection[str] | None = None,
    ) -> None:
        """Start a session, from a copy of `initial_state` if given (D11); ValueError when the id is active (D7).

        `history` is shared by the sessions of several engines (D31) and stands in place of the state's own.
        `namespaces` are those of the job's tools: no backend is opened for the others. None means all.
        """
        session = Session.restored(
            session_id, initial_state or {}, auxdata=auxdata, seed=seed, history=history, counted=self.toolsets
        )
        session.namespaces = None if namespaces is None else frozenset(namespaces)
        self._sessions.add(session)
        async with session.lock:  # Free, so nothing else of this session comes first.
            try:
                await self._open_session(session)
            except BaseException:
                self._sessions.remove(session)
                raise

    async def teardown(self, session_id: str, *, keeping: Collection[str] = ()) -> None:
        """End a session after the call that may be running; harmless when there is none (D8).

        What it has on the backends of the namespaces in `keeping` stays: another attempt takes it up.
        """
        session = self._sessions.find(session_id)
        if session is None:
            return
        self._sessions.remove(session)
        session.kept = frozenset(keeping)
        async with session.lock:
            await self._close_session(session)

    async def execute(self, session_id: str, tool_calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Return one result per call, in call order (D18), and append both to the history (D17).

        KeyError when the session is not active (D9); TurnAborted where a toolset says so, SessionLost
        where a backend forgot the session; no call raises otherwise.
        """
        session = self._sessions.get(session_id)
        async with session.lock:
            self._sessions.check(session)
            return await self._perform(session, tool_calls)

    async def simulate(self, session_id: str, tool_calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Return what `execute` would, and leave the session as it was (D15); KeyError when it is not active.

        What the calls would change on a backend is not rolled back: `simulate` of their toolset decides (decision 8).
        """
        session = self._sessions.get(session_id)
        async with session.lock:
            self._sessions.check(session)
            # The copy is made inside the lock, or a running execute would be lost from it (D14).
            return await self._rehearse(session.rehearsal(), tool_calls)

    async def get_session_state(self, session_id: str) -> JSONObject | None:
        """Return `{"history": [{"call", "result"}], "scratch": {}}`, a copy that `setup` takes; None when unknown."""
        session = self._sessions.find(session_id)
        if session is None:
            return None
        async with session.lock:
            return {"history": session.history.to_list(), "scratch": await self._scratch_of(session)}

    async def get_session_scratch(self, session_id: str) -> JSONObject:
        """Return a copy of the scratch alone, whose cost does not grow with the history; KeyError when not active."""
        session = self._sessions.get(session_id)
        async with session.lock:
            return await self._scratch_of(session)

    def leaves_behind(self, namespaces: Collection[str]) -> bool:
        """Whether a session with tools of these namespaces makes something on a backend that outlives this process."""
        return False

    def takes_up(self, namespaces: Collection[str]) -> frozenset[str]:
        """Return those of the namespaces whose session on the backend `setup` goes on with, when the scratch names it.

        For the others it makes a fresh one, so that what a dead attempt left there must be torn down first.
        """
        return frozenset()

    async def reap(self, session_id: str, *, scratch: Mapping[str, Any], namespaces: Collection[str]) -> None:
        """Tear down on the backends what a session of a dead process left, told by its scratch; raises when that fails.

        Harmless when there is nothing left, and for a session that nobody ever set up.
        """
        session = Session.restored(
            session_id, {"scratch": scratch}, auxdata=_NOTHING, seed=0, history=None, counted=self.toolsets
        )
        session.namespaces = frozenset(namespaces)
        await self._close_session(session)

    # What variants write

    @abstractmethod
    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> Any | ToolResult:
        """Answer one call whose arguments are valid; raise ToolFailed for a failure of a known type."""

    async def _open_session(self, session: Session) -> None:  # noqa: B027 - most engines have nothing to do here
        """Prepare what the session needs; raising leaves no session."""

    async def _close_session(self, session: Session) -> None:  # noqa: B027 - most engines have nothing to do here
        """Give back what the session holds."""

    async def _scratch_of(self, session: Session) -> JSONObject:
        """Return what is kept of the session for a later attempt."""
        return session.scratch_copy()

    def _depends_on_session(self, tool: Tool, toolset: Toolset) -> bool:
        """Whether what a tool says depends on the session's calls before: they keep their order, and none is cached."""
        return self.effects is Effects.session or (self.effects is Effects.backend and toolset.stateful)

    def _faulty_result(self, category: ErrorCategory, call: ToolCall) -> ToolResult:
        """Return what a fault on purpose looks like here (rules D33, D34)."""
        return faulty_result(category, call)

    # Batches, for engines that are made of others

    async def _perform(self, session: Session, calls: Sequence[ToolCall]) -> list[ToolResult]:
        return await carried_out(session, self._answering.plan(session, calls), self._answering.answer)

    async def _rehearse(self, rehearsal: Session, calls: Sequence[ToolCall]) -> list[ToolResult]:
        async with Simulation(self._answering, self.effects, self.stand_ins) as simulation:
            planned = self._answering.plan(rehearsal, calls)
            return await carried_out(rehearsal, planned, simulation.answer, is_rehearsal=True)
