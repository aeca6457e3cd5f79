"""Answers from outside as they come: checked against what the calls' tools give, before any of them is taken."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from conversations.recipe_files import recipe_from_json
from engines.calling.matching import best_match
from engines.calling.shortening import cut, shortened
from engines.loading import load_registry
from engines.plain import as_json
from engines.registry import ToolRegistry
from engines.schemas import compiled, problems
from engines.tool import INFERRED_OUTPUT, Tool
from jobs.paused import PendingCall
from jobs.run import read_recipe
from producer.errors import InputInvalid, ResultInvalid
from producer.strict_json import StrictJSONError, parse_strict
from results.manifest import RunManifest
from results.store import Store

JSONObject = dict[str, Any]
Given = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Results by call id, or a list of `{"call_id", "result"}` and `{"call_id", "error"}`."""

MOST_BYTES = 4_000_000
_ERROR_CHARS = 10_000
_ENTRY_KEYS = {"call_id", "result", "error"}


def entries_of(given: Given) -> dict[str, JSONObject]:
    """Results in either form as `{"result"}` or `{"error"}` by call id; ResultInvalid for what is neither."""
    if isinstance(given, Mapping) and not _is_entry(given):
        return {str(call_id): {"result": result} for call_id, result in given.items()}
    entries: dict[str, JSONObject] = {}
    for number, each in enumerate([given] if isinstance(given, Mapping) else given, start=1):
        call_id, entry = _entry(each, number)
        if call_id in entries:
            raise ResultInvalid(f"answer {number}: call {call_id!r} is answered twice; one answer a call")
        entries[call_id] = entry
    return entries


def read_answers_text(text: str, where: str) -> dict[str, JSONObject]:
    """A file of answers: one JSON object or list, or one entry a line; InputInvalid names the place."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    try:
        given = parse_strict(text)
    except StrictJSONError as whole:
        if len(lines) < 2:  # noqa: PLR2004 - one line is no list of lines
            raise InputInvalid(f"{where}: {whole.message} (at character {whole.offset + 1})") from None
        given = [_line(line, f"{where}:{number}") for number, line in lines]
    if not isinstance(given, dict | list):
        raise InputInvalid(f"{where}: write an object of results by call id, or a list of entries with a call_id")
    try:
        return entries_of(given)
    except ResultInvalid as error:
        raise ResultInvalid(f"{where}: {error}") from None


class ResultCheck:
    """Knows what the tools of a run give, from its stored recipe."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    @classmethod
    def of_run(cls, store: Store, manifest: RunManifest) -> "ResultCheck":
        """Read the recipe of a run; it names every tool."""
        tools = recipe_from_json(read_recipe(store, manifest)).tools
        return cls(load_registry(tools, folder=Path(), environment={}))

    def checked(self, calls: Iterable[PendingCall], entries: Mapping[str, JSONObject]) -> dict[str, JSONObject]:
        """The entries as they are stored, too long ones cut (rule S14); ResultInvalid for the first wrong one."""
        return {call.call_id: self._checked(call, entries[call.call_id]) for call in calls if call.call_id in entries}

    def _checked(self, call: PendingCall, entry: JSONObject) -> JSONObject:
        tool, limit = self._tool(call)
        if "error" in entry:
            return {"error": cut(entry["error"], limit or _ERROR_CHARS)}
        try:
            result = as_json(entry["result"])
            size = len(orjson.dumps(result))
        except TypeError as error:
            raise ResultInvalid(f"call {call.call_id} of {call.name}: the result is not JSON: {error}") from None
        if size > MOST_BYTES:
            raise ResultInvalid(
                f"call {call.call_id} of {call.name}: the result has {size:,} bytes, {MOST_BYTES:,} are allowed"
            )
        if tool is not None and tool.output_parameters is not None and not tool.metadata.get(INFERRED_OUTPUT):
            told = problems(compiled(tool.output_parameters), result, root="result")
            if told:
                raise ResultInvalid(
                    f"call {call.call_id} of {call.name}: {told}; see the tool's output_parameters. Nothing was taken"
                )
        text, left_out = (result, {}) if limit is None else shortened(result, limit)
        return {"result": text, "metadata": left_out} if left_out else {"result": result}

    def _tool(self, call: PendingCall) -> tuple[Tool | None, int | None]:
        """The overload that a call means, and how many characters its result may have."""
        if call.name not in self._registry.tool_names():
            return None, None
        tool = best_match(self._registry.overloads(call.name), call.arguments)
        return tool, None if tool is None else self._registry.toolsets[tool.namespace].defaults_for(
            tool
        ).max_result_chars


def _entry(each: Any, number: int) -> tuple[str, JSONObject]:
    if not isinstance(each, Mapping) or not isinstance(each.get("call_id"), str):
        raise ResultInvalid(f'answer {number}: write {{"call_id": …, "result": …}} or {{"call_id": …, "error": "…"}}')
    call_id = str(each["call_id"])
    if unknown := sorted(set(each) - _ENTRY_KEYS):
        raise ResultInvalid(
            f"answer {number} ({call_id}): unknown key {unknown[0]!r}; there are call_id, result, error"
        )
    if ("result" in each) == ("error" in each and each["error"] is not None):
        raise ResultInvalid(f"answer {number} ({call_id}): give either a result or an error")
    if "result" in each:
        return call_id, {"result": each["result"]}
    if not isinstance(each["error"], str) or not each["error"].strip():
        raise ResultInvalid(f'answer {number} ({call_id}): an error is a text for the model, such as "out of stock"')
    return call_id, {"error": each["error"]}


def _is_entry(given: Mapping[str, Any]) -> bool:
    return "call_id" in given and set(given) <= _ENTRY_KEYS and len(given) > 1


def _line(line: str, where: str) -> Any:
    try:
        return parse_strict(line)
    except StrictJSONError as error:
        raise InputInvalid(f"{where}: {error.message} (at character {error.offset + 1})") from None
