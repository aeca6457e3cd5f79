"""What an engine keeps of one conversation: plain JSON, beside the lock that keeps its calls in order."""

import asyncio
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Self

from engines.errors import SessionStateInvalid
from engines.history import History, HistoryEntry
from engines.nearest import listed
from engines.plain import JSONObject, as_json, copied

_STATE_KEYS = frozenset({"history", "scratch"})
_call_number: ContextVar[int] = ContextVar("call_number")


@dataclass(slots=True, eq=False)
class Session:
    """One session of one engine; `scratch` is the variant's JSON, `resources` what it holds open and never stores."""

    id: str
    seed: int
    auxdata: Mapping[str, Any]
    history: History
    scratch: JSONObject
    namespaces: frozenset[str] | None = None  # those of the job's tools; None: all
    lacks_scratch: bool = False  # the history was made in a session whose scratch nobody kept: make it again
    kept: frozenset[str] = frozenset()  # those whose session on the backend `_close_session` leaves to the next attempt
    call_count: int = 0
    resources: dict[str, Any] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    def restored(
        cls,
        session_id: str,
        state: Mapping[str, Any],
        *,
        auxdata: Mapping[str, Any],
        seed: int,
        history: History | None,
        counted: Collection[str],
    ) -> Self:
        """Return a session with a copy of the state; SessionStateInvalid when it is none.

        A `history` stands in place of the state's own; a state without a scratch is one whose scratch nobody knows.
        `counted` are the namespaces whose calls have numbers here.
        """
        if not state.keys() <= _STATE_KEYS or not isinstance(state.get("scratch", {}), dict):
            message = f"session {session_id!r}: a state has a history and a scratch, got {listed(state)}"
            raise SessionStateInvalid(message)
        if history is None:
            history = History.from_list(state.get("history", ()))
        return cls(
            id=session_id,
            seed=seed,
            auxdata=auxdata,
            history=history,
            scratch=copied(state.get("scratch", {})),
            lacks_scratch="scratch" not in state,
            call_count=sum(entry.was_performed and entry.call.namespace in counted for entry in history),
        )

    @property
    def call_number(self) -> int:
        """The number of the call that is being answered, from 0: the same wherever the call is made again.

        For `_call` and what it calls; `call_count` does not tell it, since calls of a batch may run side by side.
        """
        return _call_number.get(self.call_count)

    def answering(self, number: int) -> None:
        """Say which call the running task answers."""
        _call_number.set(number)

    def needs(self, namespace: str) -> bool:
        """Whether the session may be asked for tools of this namespace."""
        return self.namespaces is None or namespace in self.namespaces

    def record(self, entry: HistoryEntry) -> None:
        """Append a finished call; the number of a call is how many were performed before it."""
        self.history.append(entry)
        self.call_count += entry.was_performed

    def rehearsal(self) -> "Session":
        """Return a copy to simulate on: it sees this history, and what it changes is thrown away (rules D14, D15)."""
        return Session(
            id=self.id,
            seed=self.seed,
            auxdata=self.auxdata,
            history=self.history.branch(),
            scratch=self.scratch_copy(),
            namespaces=self.namespaces,
            call_count=self.call_count,
            resources=self.resources,
        )

    def scratch_copy(self) -> JSONObject:
        """Return the scratch as JSON of its own; SessionStateInvalid when a tool put something else into it."""
        if not self.scratch:
            return {}
        try:
            copy: JSONObject = as_json(self.scratch)
        except TypeError as error:
            raise SessionStateInvalid(f"session {self.id!r}: the scratch must be plain JSON: {error}") from error
        return copy


class ActiveSessions:
    """The sessions of an engine by id."""

    def __init__(self) -> None:
        self._by_id: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def add(self, session: Session) -> None:
        """Make a session active; ValueError when one of its id is (rule D7), in one step for all that try."""
        if self._by_id.setdefault(session.id, session) is not session:
            raise ValueError(f"Session '{session.id}' is already active. Call teardown() before re-registering.")

    def find(self, session_id: str) -> Session | None:
        """Return the session, None when it is not active."""
        return self._by_id.get(session_id)

    def get(self, session_id: str) -> Session:
        """Return the session; KeyError when it is not active (rule D9)."""
        session = self._by_id.get(session_id)
        if session is None:
            raise _not_active(session_id)
        return session

    def check(self, session: Session) -> None:
        """KeyError when the session was torn down while its lock was waited for."""
        if self._by_id.get(session.id) is not session:
            raise _not_active(session.id)

    def remove(self, session: Session) -> None:
        """Make it inactive; harmless when it is, or when another has its id by now."""
        if self._by_id.get(session.id) is session:
            del self._by_id[session.id]


def _not_active(session_id: str) -> KeyError:
    return KeyError(f"Session '{session_id}' is not active. Call setup() before execute().")
