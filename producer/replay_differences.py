"""Where a replayed conversation differs from its record, place by place."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conversations.state import COMPLETED
from producer.replaying import Replayed

JSONObject = dict[str, Any]
# How the loop itself ends a conversation; whatever else stands in a record came from outside.
_OF_THE_LOOP = frozenset({"max_turns", "budget", "refusal", "content_filter", "truncated_reply", "truncated_tool_call"})
_OF_TIME = "limits.max_seconds"
_MEASURED = "debug"  # the key of a result's metadata whose figures differ each time


@dataclass(frozen=True, slots=True)
class Difference:
    """One place (`messages[3].content`) and what stands there; None where nothing does."""

    at: str
    recorded: Any
    replayed: Any

    def to_json(self) -> JSONObject:
        """For `--json`."""
        return {"at": self.at, "recorded": self.recorded, "replayed": self.replayed}


def differences(record: JSONObject, replayed: Replayed) -> list[Difference]:
    """Every difference of what was offered, said and found, and of how it ended."""
    state = replayed.state
    found = [
        *_between("tools", record["tools"], replayed.tools),
        *_between("messages", record["messages"], state.messages),
        *_between("tool_results", _by_call(record["tool_results"]), _by_call(state.tool_results)),
    ]
    before, now = _recorded_end(record), _replayed_end(replayed)
    if before is not None and before != now:
        found.append(Difference("end", before, now))
    return found


def _recorded_end(record: JSONObject) -> str | None:
    """How the loop ended, None when something from outside ended it: that happens in no replay."""
    error = record["error"] or {}
    kind = str(error.get("type", ""))
    if record["status"] == "ok" or kind.startswith("rejected:"):
        return COMPLETED
    if record["status"] == "failed" and kind in _OF_THE_LOOP and _OF_TIME not in error["message"]:
        return kind
    return None


def _replayed_end(replayed: Replayed) -> str:
    if replayed.stopped is not None:
        return replayed.stopped
    error = replayed.state.error
    return str(replayed.state.status) if error is None else str(error["type"])


def _by_call(entries: list[JSONObject]) -> JSONObject:
    """Results by their calls: answers from outside come in any order."""
    return {entry["call_id"]: entry | {"metadata": _unmeasured(entry["metadata"])} for entry in entries}


def _unmeasured(metadata: JSONObject) -> JSONObject:
    return {key: value for key, value in metadata.items() if key != _MEASURED}


def _between(at: str, recorded: Any, replayed: Any) -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(replayed, dict):
        for key in [*recorded, *(key for key in replayed if key not in recorded)]:
            yield from _between(f"{at}.{key}", recorded.get(key), replayed.get(key))
    elif isinstance(recorded, list) and isinstance(replayed, list):
        for position in range(max(len(recorded), len(replayed))):
            yield from _between(f"{at}[{position}]", _at(recorded, position), _at(replayed, position))
    elif recorded != replayed:
        yield Difference(at, recorded, replayed)


def _at(values: list[Any], position: int) -> Any:
    return values[position] if position < len(values) else None
