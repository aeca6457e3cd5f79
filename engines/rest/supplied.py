"""What the configuration puts into a request, over whatever the model's arguments say: never taken from a call."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Supplied:
    """Values by their names on the wire, not yet encoded."""

    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    path: Mapping[str, str] = field(default_factory=dict)
    cookies: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)


NOTHING = Supplied()


@dataclass(frozen=True, slots=True)
class Reserved:
    """The names that only the configuration may fill: of credentials, of sessions, of idempotency keys."""

    headers: frozenset[str] = frozenset()
    """In lower case."""

    query: frozenset[str] = frozenset()
    cookies: frozenset[str] = frozenset()


NOT_RESERVED = Reserved()
