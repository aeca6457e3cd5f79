"""Calls and results for callers that speak in code: Python call strings, and `<helpers_result>` texts.

A view, made of the structured calls and results and never read back: those are matched by call id (rules S7, S8).
"""

import keyword
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from engines.calling.shortening import cut
from jobs.paused import PendingCall
from producer.external_calls import WaitingCall

JSONObject = dict[str, Any]
Call = PendingCall | WaitingCall

OPENING, CLOSING = "<helpers_result>", "</helpers_result>"
NOTHING = "(no results)"
MOST_CHARS = 10_000
MOST_CHARS_IN_ALL = 20_000


def call_string(call: Call) -> str:
    """A call as Python would write it: `ask(what='x')`; `**{…}` for arguments that no keyword can name (rule S7)."""
    named = [f"{key}={value!r}" for key, value in call.arguments.items() if _is_keyword(key)]
    other = {key: value for key, value in call.arguments.items() if not _is_keyword(key)}
    return f"{bare_name(call.name)}({', '.join([*named, f'**{other!r}'] if other else named)})"


def call_strings(calls: Iterable[Call]) -> list[str]:
    """Each call as a string, in their order."""
    return [call_string(call) for call in calls]


def bare_name(name: str) -> str:
    """The tool's own name, which code calls it by: without its namespace."""
    return name.rpartition("::")[2]


def helpers_result(calls: Sequence[Call], results: Mapping[str, JSONObject], *, max_chars: int = MOST_CHARS) -> str:
    """The results of calls, by call id `{"result"}` or `{"error"}`, as a text for a model that reads such (rule S8).

    One line for each call, in call order: `name: result`, an error as `name: ERROR: text`; a call without a result has
    none. Each is cut to `max_chars`, all of them to twice as much (rule S14). Never empty (rule S15).
    """
    lines = [
        f"{bare_name(call.name)}: {_told(results[call.call_id], max_chars)}"
        for call in calls
        if call.call_id in results
    ]
    body = cut("\n".join(lines) or NOTHING, min(2 * max_chars, MOST_CHARS_IN_ALL))
    return f"{OPENING}\n{body}\n{CLOSING}"


def _told(entry: JSONObject, max_chars: int) -> str:
    if entry.get("error") is not None:
        return cut(_harmless(f"ERROR: {entry['error']}"), max_chars)
    return cut(_harmless(orjson.dumps(entry.get("result")).decode()), max_chars)


def _harmless(text: str) -> str:
    """A result that holds the tags must not end the block it stands in (rule S12: it is data)."""
    return text.replace(CLOSING, "<\\/helpers_result>").replace(OPENING, "<\\helpers_result>")


def _is_keyword(key: str) -> bool:
    return key.isidentifier() and not keyword.iskeyword(key)
