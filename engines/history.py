"""What a session's calls came to, in call order: appended to, branched for a batch, never copied whole per call."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Self

from engines.errors import InvalidTool, SessionStateInvalid
from engines.plain import JSONObject, copied
from engines.tool import ErrorType, ToolCall, ToolResult

INJECTED = "injected"  # the metadata key of a result that is a fault on purpose; it says which
DENIED = "denied"  # the metadata key of a result that the recipe's permissions gave in the tool's place
EXTERNAL = "external"  # the metadata key of a result that somebody outside gave in the tool's place
_NOT_PERFORMED = frozenset(
    {ErrorType.validation, ErrorType.unknown_tool, ErrorType.conflict, ErrorType.limit, ErrorType.external}
)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A call and its result."""

    call: ToolCall
    result: ToolResult

    @property
    def was_performed(self) -> bool:
        """Whether the call got as far as its tool or its fault; what was turned away before has no call number."""
        if DENIED in self.result.metadata:
            return False
        return self.result.error_type not in _NOT_PERFORMED or INJECTED in self.result.metadata

    def to_dict(self) -> JSONObject:
        """`{"call": …, "result": …}`, a copy."""
        return {"call": copied(self.call.to_dict()), "result": copied(self.result.to_dict())}


class History:
    """Entries in call order; a branch sees its trunk as it was when it was made or last rebased, and its own."""

    __slots__ = ("_own", "_seen", "_trunk")

    def __init__(self, entries: Iterable[HistoryEntry] = (), *, trunk: "History | None" = None) -> None:
        self._own = list(entries)
        self._trunk = trunk
        self._seen = 0 if trunk is None else len(trunk)

    def __iter__(self) -> Iterator[HistoryEntry]:
        if self._trunk is None:
            return iter(self._own)
        return chain(islice(self._trunk, self._seen), self._own)

    def __len__(self) -> int:
        return self._seen + len(self._own)

    def append(self, entry: HistoryEntry) -> None:
        """Add one entry at the end."""
        self._own.append(entry)

    def branch(self) -> "History":
        """Return a history that sees these entries and keeps its own to itself."""
        return History(trunk=self)

    def own(self) -> list[HistoryEntry]:
        """Return the entries added here since the last rebase."""
        return self._own

    def rebase(self) -> None:
        """Forget the own entries and see all the trunk has by now: whoever merges batches put them there."""
        if self._trunk is not None:
            self._own = []
            self._seen = len(self._trunk)

    def to_list(self) -> list[JSONObject]:
        """Return all entries as JSON, copied."""
        return [entry.to_dict() for entry in self]

    @classmethod
    def from_list(cls, entries: Iterable[Mapping[str, Any]]) -> Self:
        """Read what `to_list` wrote; SessionStateInvalid otherwise."""
        try:
            return cls(
                HistoryEntry(ToolCall.from_dict(copied(entry["call"])), ToolResult.from_dict(copied(entry["result"])))
                for entry in entries
            )
        except (KeyError, TypeError, AttributeError, InvalidTool) as error:
            raise SessionStateInvalid(f'a history entry is {{"call", "result"}}: {error!r}') from error
