"""The sessions that conversations have on a backend: begun, taken up or made again, ended by what is kept of them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import structlog

from engines.errors import SessionLost, ToolFailed
from engines.history import HistoryEntry
from engines.network.answers import Answer
from engines.network.failures import NetworkFailure
from engines.plain import JSONObject
from engines.rest.answer import raise_failed, shown
from engines.rest.backends import Backend
from engines.rest.masking import Masking
from engines.rest.operation import RestRequest
from engines.rest.session_settings import SESSION_ID
from engines.rest.sessions import Prepared, Sessions
from engines.rest.supplied import NOTHING, Supplied
from engines.session import Session
from engines.tool import ErrorType

_log = structlog.get_logger(__name__)
_HANDLES = "sessions"
_TEARDOWN_TRIES = 3
_TEARDOWN_SECONDS = 10.0
_FIRST_PAUSE_SECONDS = 0.2

Replay = Callable[[int, HistoryEntry], Awaitable[None]]
Pause = Callable[[float], Awaitable[None]]


class Conversations:
    """Keeps a handle of each in `scratch["sessions"][namespace]`: what its calls carry, and its teardown needs."""

    def __init__(
        self, sessions: Mapping[str, Sessions], backend: Backend | None, mask: Masking, pause: Pause = asyncio.sleep
    ) -> None:
        self._sessions = sessions
        self._backend = backend
        self._mask = mask
        self._pause = pause

    def handle(self, session: Session, namespace: str) -> JSONObject | None:
        """Return what is kept of a conversation's session; None for a namespace without sessions."""
        handle: JSONObject | None = session.scratch.get(_HANDLES, {}).get(namespace)
        return handle

    def supplied(self, session: Session, namespace: str) -> Supplied:
        """Return what goes with each of its calls."""
        handle = self.handle(session, namespace)
        return NOTHING if handle is None else self._sessions[namespace].supplied(handle)

    def check_not_lost(self, session: Session, namespace: str, answer: Answer) -> None:
        """SessionLost when a call was answered so that its session cannot be there any more."""
        sessions = self._sessions.get(namespace)
        if sessions is not None and answer.status in sessions.settings.lost_statuses:
            raise SessionLost(namespace, session.id, f"a call was answered by HTTP {answer.status}")

    async def open(self, session: Session, changes: Mapping[str, Sequence[HistoryEntry]], replay: Replay) -> None:
        """Begin the conversation's sessions, or leave none; `changes` are its calls so far that made their states.

        ToolFailed when a setup fails; SessionLost when an earlier state cannot, or must not, be made again.
        """
        restored = session.scratch.get(_HANDLES, {})
        handles: dict[str, JSONObject] = {}
        begun: list[str] = []
        try:
            for namespace, sessions in self._sessions.items():
                if not session.needs(namespace):
                    continue
                session.scratch[_HANDLES] = handles
                earlier = changes.get(namespace, ())
                if sessions.settings.resume == "reuse" and namespace in restored:
                    handles[namespace] = restored[namespace]
                    continue
                if earlier and sessions.settings.resume in {"reuse", "fail"}:
                    cause = f"what it did before is lost, and its sessions say resume: {sessions.settings.resume}"
                    raise SessionLost(namespace, session.id, cause)
                begun.append(namespace)
                handles[namespace] = {SESSION_ID: session.id}
                handles[namespace] = await self._set_up(sessions, session.id)
                if sessions.settings.resume == "replay":
                    for number, entry in enumerate(earlier):
                        await replay(number, entry)
        except BaseException:
            await self._abandon(session.id, {namespace: handles[namespace] for namespace in begun})
            raise

    async def close(self, session: Session) -> None:
        """End every session of the conversation but those it keeps, also after one that fails; ToolFailed then.

        One whose handle was lost with its process is ended by the conversation's id, where the teardown needs no more.
        """
        failures: list[ToolFailed] = []
        for namespace, sessions in self._sessions.items():
            if not session.needs(namespace) or namespace in session.kept:
                continue
            try:
                await self._end(sessions, self.handle(session, namespace) or {SESSION_ID: session.id})
            except ToolFailed as failure:
                failures.append(failure)
        if failures:
            raise failures[0]

    async def _set_up(self, sessions: Sessions, session_id: str) -> JSONObject:
        if sessions.setup is None:
            return sessions.handle(session_id, None)
        request = sessions.setup.request({SESSION_ID: session_id})
        try:
            answer = await self._ask(request, sessions.setup)
        except NetworkFailure as failure:
            raise_failed(failure)
        if not sessions.setup.settings.is_success(answer.status):
            raise self._refused(f"no session for {sessions.namespace!r}", request, answer)
        return sessions.handle(session_id, answer)

    async def _end(self, sessions: Sessions, handle: Mapping[str, Any]) -> None:
        """Tear one session down, in a few tries; harmless when it is gone, ToolFailed when it may be there."""
        if sessions.teardown is None or not sessions.can_end(handle):
            return
        request = sessions.teardown.request(handle)
        failure: ToolFailed | None = None
        for number in range(_TEARDOWN_TRIES):
            if number:
                await self._pause(_FIRST_PAUSE_SECONDS * 2 ** (number - 1))
            try:
                answer = await self._ask(request, sessions.teardown, seconds=_TEARDOWN_SECONDS)
            except NetworkFailure as error:
                failure = ToolFailed(ErrorType.network, f"no teardown for {sessions.namespace!r}: {error.message}")
                continue
            if sessions.has_ended(answer):
                return
            failure = self._refused(f"no teardown for {sessions.namespace!r}", request, answer)
        if failure is not None:
            raise failure

    async def _abandon(self, session_id: str, handles: Mapping[str, JSONObject]) -> None:
        """End what was begun before something failed; that failure is told, this one only logged."""
        for namespace, handle in handles.items():
            try:
                await self._end(self._sessions[namespace], handle)
            except ToolFailed as failure:
                _log.warning("session left on its backend", session=session_id, namespace=namespace, cause=str(failure))

    async def _ask(self, request: RestRequest, prepared: Prepared, *, seconds: float | None = None) -> Answer:
        if self._backend is None:
            raise RuntimeError("sessions need the engine's url; the settings see to that")
        return await self._backend.ask(request, timeout_seconds=prepared.settings.timeout or seconds)

    def _refused(self, what: str, request: RestRequest, answer: Answer) -> ToolFailed:
        path = request.target.partition("?")[0]
        told = shown(self._mask(answer.body))
        return ToolFailed(ErrorType.execution, f"{what}: {request.method} {path} answered HTTP {answer.status}: {told}")
