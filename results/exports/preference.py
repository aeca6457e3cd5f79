"""Forked conversations as preference pairs: `{"prompt": [...], "chosen": [...], "rejected": [...], "tools": [...]}`."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from results.reading import find_record
from results.store_contract import Store

JSONObject = dict[str, Any]
FORK = "fork"
"""The metadata key of a forked conversation: `{run, job, index, turn, messages, number}` of its parent."""
REJECTED = "rejected:"
_MODELS_OWN_FAILURES = frozenset({"max_turns", "refusal", "truncated_reply", "truncated_tool_call"})
_Parent = tuple[str, int]


def with_parents(store: Store, records: Iterable[JSONObject]) -> Iterator[JSONObject]:
    """Return the records, and behind them those of the conversations that they are forks of."""
    parents: dict[_Parent, None] = {}
    for record in records:
        yield record
        if fork := record["metadata"].get(FORK):
            parents[_parent(fork)] = None
    for run_id, index in parents:
        parent = find_record(store, run_id, index=index)
        if parent is not None:
            yield parent


def export_lines(records: Iterable[JSONObject], *, statuses: Collection[str] = ("ok", "failed")) -> Iterator[bytes]:
    """Return, for each turn that was forked, the best of its continuations paired with each that is worse.

    One that is `ok` is better than one that a check rejected or that the model did not bring to an end; where a judge
    gave points, more are better. Continuations that failed for reasons of others are left out, and so are equal ones.
    """
    forks: dict[tuple[_Parent, int], list[_Continuation]] = {}
    parents: dict[_Parent, JSONObject] = {}
    for record in records:
        if record["status"] not in statuses:
            continue
        parents[record["run_id"], record["index"]] = record
        fork = record["metadata"].get(FORK)
        if fork and (continuation := _Continuation.of(record, fork["messages"])):
            forks.setdefault((_parent(fork), fork["messages"]), []).append(continuation)
    for (parent, start), continuations in forks.items():
        own = _Continuation.of(parents[parent], start) if parent in parents else None
        yield from _pairs([*continuations, own] if own is not None else continuations)


@dataclass(slots=True)
class _Continuation:
    """What came after the turn, and how good it is."""

    prompt: list[JSONObject]
    messages: list[JSONObject]
    tools: list[JSONObject]
    rank: tuple[bool, float]
    encoded: bytes = field(repr=False)

    @classmethod
    def of(cls, record: JSONObject, start: int) -> "_Continuation | None":
        """None for one that says nothing of the model: it is empty, or something else made it fail."""
        messages = record["messages"][start:]
        kind = str((record["error"] or {}).get("type", ""))
        is_ok = record["status"] == "ok"
        if not messages or not (is_ok or kind.startswith(REJECTED) or kind in _MODELS_OWN_FAILURES):
            return None
        prompt, encoded = record["messages"][:start], orjson.dumps(_without_ids(messages))
        return cls(prompt, messages, record["tools"], (is_ok, _points(record["metadata"])), encoded)


def _pairs(continuations: list[_Continuation]) -> Iterator[bytes]:
    best = max(continuations, key=lambda each: each.rank)
    seen = {best.encoded}
    for worse in continuations:
        if worse.rank < best.rank and worse.encoded not in seen:
            seen.add(worse.encoded)
            line = {"prompt": best.prompt, "chosen": best.messages, "rejected": worse.messages}
            if best.tools:
                line["tools"] = best.tools
            yield orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def _without_ids(messages: list[JSONObject]) -> list[JSONObject]:
    """The messages without what differs though the same was said: the ids of calls."""
    plain = []
    for message in messages:
        calls = [call.get("function") for call in message.get("tool_calls") or ()]
        plain.append({**message, "tool_calls": calls, "tool_call_id": None})
    return plain


def _points(metadata: Mapping[str, Any]) -> float:
    judged = metadata.get("checks", {}).get("judge", {})
    return float(judged.get("score", 0))


def _parent(fork: Mapping[str, Any]) -> _Parent:
    return str(fork["run"]), int(fork["index"])
