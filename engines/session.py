"""What an engine keeps of one conversation: plain JSON, beside the lock that keeps its calls in order."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engines.errors import SessionStateInvalid
from engines.history import History, HistoryEntry
from engines.plain import JSONObject, as_json


@dataclass(slots=True, eq=False)
class Session:
    """One session of one engine; `scratch` is the variant's JSON, `resources` what it holds open and never stores."""

    id: str
    seed: int
    auxdata: Mapping[str, Any]
    history: History
    scratch: JSONObject
    namespaces: frozenset[str] | None = None  # those of the job's tools; None: all
    call_count: int = 0
    resources: dict[str, Any] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

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
