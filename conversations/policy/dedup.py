"""Equal calls of one batch run once, and every one of them gets the result (rule U9)."""

from collections.abc import Mapping, Sequence

from conversations.messages import JSONObject
from conversations.wire.openai import ParsedCall
from engines.plain import canonical

DUPLICATE_OF = "duplicate_of"
"""The metadata key of a result that was copied: the id of the call that ran."""


def duplicates(calls: Sequence[ParsedCall]) -> Mapping[str, str]:
    """The id of each later call that says the same as an earlier one, and the id of that earlier one.

    The same means the same tool and equal arguments, in whatever order and spelling.
    """
    first: dict[tuple[str, str], str] = {}
    copies: dict[str, str] = {}
    if len(calls) < 2:  # noqa: PLR2004 - most batches: nothing to compare
        return copies
    for parsed in calls:
        if parsed.call is None:
            continue
        key = (parsed.call.qualified_name, canonical(parsed.call.arguments))
        if (earlier := first.setdefault(key, parsed.call_id)) != parsed.call_id:
            copies[parsed.call_id] = earlier
    return copies


def copy_of(entry: JSONObject, call_id: str) -> JSONObject:
    """A result's entry for another call that said the same."""
    return entry | {"call_id": call_id, "metadata": entry["metadata"] | {DUPLICATE_OF: entry["call_id"]}}
