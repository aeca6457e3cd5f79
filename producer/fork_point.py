"""A conversation cut after some of its turns: from a record and its job line to the line that goes on from there."""

from typing import Any

from conversations.history import call_ids_in
from conversations.messages import Message, text_of
from conversations.steps import PAUSED_BY_MODEL
from jobs.job import JobLine
from producer.errors import UsageInvalid
from results.exports.preference import FORK

JSONObject = dict[str, Any]


def model_turns(messages: list[Message], line: JobLine) -> list[int]:
    """Where in a record's messages the model's replies stand; replies that the job line brought along are none."""
    replies = [position for position, message in enumerate(messages) if message.get("role") == "assistant"]
    given = sum(message.get("role") == "assistant" for message in line.messages or ())
    kept = line.history.turns if line.history is not None else 0
    return replies[given - kept :]


def forked_line(record: JSONObject, line: JobLine, *, turn: int, seed: int) -> JSONObject:
    """The job line of a conversation as it was before its model spoke for the time `turn` + 1.

    All else that the job says stays: its tools, its variables, its own seed (which draws the same tools and plays the
    same user). `seed` is that of what the models say from here on. UsageInvalid for a turn that it did not have.
    """
    messages = record["messages"]
    if not messages:
        raise UsageInvalid(f"job {record['job_id']} has no conversation to go on with: it ended before it began")
    turns = model_turns(messages, line)
    if turn > len(turns):
        raise UsageInvalid(
            f"--turn {turn}: job {record['job_id']} has {len(turns)} model turns; "
            f"use 0 (from its beginning) to {max(len(turns) - 1, 0)}"
        )
    end = turns[turn] if turn < len(turns) else len(messages)
    kept = messages[:end]
    call_ids = call_ids_in(kept)
    asked_again = turn < len(turns) and bool(kept) and kept[-1].get("role") == "assistant"
    history = {
        "turns": turn,
        "tool_results": [entry for entry in record["tool_results"] if entry["call_id"] in call_ids],
        "user": _user_before(record, kept),
        "finish_reason": PAUSED_BY_MODEL if asked_again else None,
        "seed": seed,
    }
    forked = {"messages": kept, "seed": record["seed"], "metadata": line.metadata | {FORK: _parent(record, turn, kept)}}
    said = line.model_dump(mode="json", exclude_defaults=True, exclude={"id", "prompt", "messages", "history"})
    return {**said, **forked, "history": {key: value for key, value in history.items() if value not in ({}, None)}}


def _parent(record: JSONObject, turn: int, kept: list[Message]) -> JSONObject:
    """Which conversation it is a fork of, and how many of the messages are that one's."""
    return {
        "run": record["run_id"],
        "job": record["job_id"],
        "index": record["index"],
        "turn": turn,
        "messages": len(kept),
    }


def _user_before(record: JSONObject, kept: list[Message]) -> JSONObject:
    """What the simulated user kept at that time; its tokens are the parent's."""
    known = record["metadata"].get("simulated_user")
    if not known:
        return {}
    later = sum(message.get("role") == "user" for message in record["messages"][len(kept) :])
    spoken = sum(message.get("role") in {"user", "assistant"} and bool(text_of(message)) for message in kept)
    user: JSONObject = {"turns": int(known.get("turns", 0)) - later}
    if "persona" in known:
        user["persona"] = known["persona"]
    asides = [aside for aside in known.get("asides", ()) if aside["after"] <= spoken]
    return user | ({"asides": asides} if asides else {})
