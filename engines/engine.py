"""The contract of every engine: sessions, their calls in order, and what stands around each call."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from engines.attempt import Pause, attempted
from engines.errors import SessionStateInvalid, TurnAborted
from engines.faults import ErrorCategory, drawn_fault, faulty_result
from engines.history import History, HistoryEntry
from engines.matching import best_match
from engines.nearest import listed
from engines.plain import JSONObject, copied
from engines.prepared import PreparedTool
from engines.result_cache import SharedCache
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall, ToolResult
from engines.toolset import Toolset

_NO_AUXDATA: Mapping[str, Any] = MappingProxyType({})
_STATE_KEYS = frozenset({"history", "scratch"})
# A call that failed by what it asked for or by its deadline is told to the model even under on_error: raise (E13).
_NEVER_ABORTING = frozenset({None, ErrorType.validation, ErrorType.unknown_tool, ErrorType.timeout})


class ToolEngine(ABC):
    """Answers tool calls. Variants write `_call`, and `_open_session`/`_close_session` where they hold something.

    Calls of one session run in order; sessions run beside each other. All methods are for one event loop.
    """

    def __init__(
        self,
        toolsets: Iterable[Toolset] = (),
        *,
        error_categories: Sequence[ErrorCategory] = (),
        shared_cache: SharedCache | None = None,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self.toolsets: Mapping[str, Toolset] = MappingProxyType({each.namespace: each for each in toolsets})
        self._error_categories = tuple(error_categories)
        self._shared_cache = shared_cache
        self._pause = pause
        self._sessions: dict[str, Session] = {}
        self._prepared: dict[str, tuple[PreparedTool, ...]] = {}
        for toolset in self.toolsets.values():
            for tool in toolset.tools:
                before = self._prepared.get(tool.qualified_name, ())
                self._prepared[tool.qualified_name] = (*before, PreparedTool.of(tool, toolset))

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
        auxdata: Mapping[str, Any] = _NO_AUXDATA,
        seed: int = 0,
        history: History | None = None,
        namespaces: Collection[str] | None = None,
    ) -> None:
        """Start a session, from a copy of `initial_state` if given (D11); ValueError when the id is active (D7).

        `history` is shared by the sessions of several engines (D31) and stands in place of the state's own.
        `namespaces` are those of the job's tools: no backend is opened for the others. None means all.
        """
        session = self._session_from(session_id, initial_state, auxdata, seed, history)
        session.namespaces = None if namespaces is None else frozenset(namespaces)
        if self._sessions.setdefault(session_id, session) is not session:
            raise ValueError(f"Session '{session_id}' is already active. Call teardown() before re-registering.")
        async with session.lock:  # Free, so nothing else of this session comes first.
            try:
                await self._open_session(session)
            except BaseException:
                self._forget(session)
                raise

    async def teardown(self, session_id: str) -> None:
        """End a session after the call that may be running; harmless when there is none (D8)."""
        session = self._sessions.get(session_id)
        if session is None:
            return
        self._forget(session)
        async with session.lock:
            await self._close_session(session)

    async def execute(self, session_id: str, tool_calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Return one result per call, in call order (D18), and append both to the history (D17).

        KeyError when the session is not active (D9); TurnAborted where a toolset says so, SessionLost
        where a backend forgot the session; no call raises otherwise.
        """
        session = self._active(session_id)
        async with session.lock:
            self._still_active(session)
            return await self._perform(session, tool_calls)

    async def simulate(self, session_id: str, tool_calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Return what `execute` would, and leave the session as it was (D15); KeyError when it is not active."""
        session = self._active(session_id)
        async with session.lock:
            self._still_active(session)
            # The copy is made inside the lock, or a running execute would be lost from it (D14).
            return await self._rehearse(session.rehearsal(), tool_calls)

    async def get_session_state(self, session_id: str) -> JSONObject | None:
        """Return `{"history": [{"call", "result"}], "scratch": {}}`, a copy that `setup` takes; None when unknown."""
        session = self._sessions.get(session_id)
        if session is None:
            return None
        async with session.lock:
            return {"history": session.history.to_list(), "scratch": await self._scratch_of(session)}

    async def get_session_scratch(self, session_id: str) -> JSONObject:
        """Return a copy of the scratch alone, whose cost does not grow with the history; KeyError when not active."""
        session = self._active(session_id)
        async with session.lock:
            return await self._scratch_of(session)

    def leaves_behind(self, namespaces: Collection[str]) -> bool:
        """Whether a session with tools of these namespaces makes something on a backend that outlives this process."""
        return False

    async def reap(self, session_id: str, *, scratch: Mapping[str, Any], namespaces: Collection[str]) -> None:
        """Tear down on the backends what a session of a dead process left, told by its scratch; raises when that fails.

        Harmless when there is nothing left, and for a session that nobody ever set up.
        """
        session = self._session_from(session_id, {"scratch": scratch}, _NO_AUXDATA, 0, None)
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

    # What stands around each call

    async def _perform(self, session: Session, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Answer the calls one after the other, so that later ones see what earlier ones came to."""
        results = []
        for call in calls:
            result = await self._recorded(session, call)
            if self._aborts(call, result):
                raise TurnAborted(result)
            results.append(result)
        return results

    async def _rehearse(self, rehearsal: Session, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Answer the calls on a session that is thrown away."""
        return [await self._recorded(rehearsal, call) for call in calls]

    async def _recorded(self, session: Session, call: ToolCall) -> ToolResult:
        """Match, validate, perhaps fail on purpose, run, record."""
        prepared = self._match(call) if session.needs(call.namespace) else None
        if prepared is None:
            result = ToolResult.failed(call, ErrorType.unknown_tool, self._unknown(call))
        else:
            arguments, problem = prepared.arguments_for(call.arguments)
            if problem:
                result = ToolResult.failed(call, ErrorType.validation, f"invalid arguments: {problem}")
            else:
                if arguments is not call.arguments:
                    call = replace(call, arguments=arguments)
                result = await self._run(session, call, prepared)
        session.record(HistoryEntry(call, result))
        return result

    async def _run(self, session: Session, call: ToolCall, prepared: PreparedTool) -> ToolResult:
        fault = drawn_fault(self._error_categories, seed=session.seed, call_number=session.call_count)
        if fault is not None:
            return faulty_result(fault, call)
        return await attempted(lambda: self._call(session, call, prepared.tool), call, prepared, self._pause)

    def _match(self, call: ToolCall) -> PreparedTool | None:
        """Return the tool that a call means, the best of its overloads."""
        overloads = self._prepared.get(call.qualified_name, ())
        if len(overloads) <= 1:
            return overloads[0] if overloads else None
        best = best_match([prepared.tool for prepared in overloads], call.arguments)
        return next(prepared for prepared in overloads if prepared.tool is best)

    def _unknown(self, call: ToolCall) -> str:
        return f"Unknown tool '{call.qualified_name}'; known tools: {listed(self._prepared) or 'none'}"

    def _aborts(self, call: ToolCall, result: ToolResult) -> bool:
        """Whether the result ends the turn: its toolset says so, and the failure is real (not injected)."""
        if result.error_type in _NEVER_ABORTING or "injected" in result.metadata:
            return False
        prepared = self._match(call)
        return prepared is not None and prepared.defaults.on_error == "raise"

    # Sessions

    async def _scratch_of(self, session: Session) -> JSONObject:
        return session.scratch_copy()

    def _session_from(
        self,
        session_id: str,
        initial_state: Mapping[str, Any] | None,
        auxdata: Mapping[str, Any],
        seed: int,
        history: History | None,
    ) -> Session:
        state = initial_state or {}
        if not state.keys() <= _STATE_KEYS or not isinstance(state.get("scratch", {}), dict):
            message = f"session {session_id!r}: a state has a history and a scratch, got {listed(state)}"
            raise SessionStateInvalid(message)
        if history is None:
            history = History.from_list(state.get("history", ()))
        return Session(
            id=session_id,
            seed=seed,
            auxdata=auxdata,
            history=history,
            scratch=copied(state.get("scratch", {})),
            call_count=sum(entry.was_performed and entry.call.namespace in self.toolsets for entry in history),
        )

    def _active(self, session_id: str) -> Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise _not_active(session_id)
        return session

    def _still_active(self, session: Session) -> None:
        """KeyError when the session was torn down while its lock was waited for."""
        if self._sessions.get(session.id) is not session:
            raise _not_active(session.id)

    def _forget(self, session: Session) -> None:
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]


def _not_active(session_id: str) -> KeyError:
    return KeyError(f"Session '{session_id}' is not active. Call setup() before execute().")
