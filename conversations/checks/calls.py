"""Checks of the calls: made rightly, answered, spread over the tools, not failing."""

from collections import Counter
from collections.abc import Iterable

from conversations.checks.finished import Finished
from conversations.checks.settings import NoFailedCalls, NoOrphanIds, ToolCoverage, ValidCalls
from conversations.messages import JSONObject, call_ids_of
from engines.tool import TOOL_NAMESPACE_SEP, ErrorType

_MISMADE = frozenset({ErrorType.validation.value, ErrorType.unknown_tool.value})
_SHOWN = 5


class ValidCallsCheck:
    """Calls that no engine could run, because the model made them wrongly."""

    name = "valid_calls"

    def __init__(self, settings: ValidCalls) -> None:
        self._at_most = settings.at_most

    async def objection(self, finished: Finished, notes: JSONObject) -> str | None:
        """Name the calls."""
        wrong = [entry for entry in finished.tool_results if entry["error_type"] in _MISMADE and _is_real(entry)]
        return _told(wrong, "were made wrongly", self._at_most)


class NoFailedCallsCheck:
    """Calls that came to an error which nobody ordered."""

    name = "no_failed_calls"

    def __init__(self, settings: NoFailedCalls) -> None:
        self._at_most = settings.at_most

    async def objection(self, finished: Finished, notes: JSONObject) -> str | None:
        """Name the calls."""
        failed = [entry for entry in finished.tool_results if entry["error"] is not None and _is_real(entry)]
        return _told(failed, "failed", self._at_most)


class NoOrphanIdsCheck:
    """What every provider asks of a history (decision 1)."""

    name = "no_orphan_ids"

    def __init__(self, settings: NoOrphanIds) -> None:
        del settings  # says nothing more

    async def objection(self, finished: Finished, notes: JSONObject) -> str | None:
        """Name the first call that is not answered, and the first answer to nothing."""
        waiting: list[str] = []
        seen: Counter[str] = Counter()
        for message in finished.messages:
            if message.get("role") == "tool":
                if not waiting or message.get("tool_call_id") != waiting[0]:
                    return f"the result of call {message.get('tool_call_id')!r} is not where it belongs"
                waiting.pop(0)
                continue
            if waiting:
                return f"call {waiting[0]!r} has no result"
            waiting = list(call_ids_of(message))
            seen.update(waiting)
        if waiting:
            return f"call {waiting[0]!r} has no result"
        twice = [call_id for call_id, count in seen.items() if count > 1]
        return f"the call id {twice[0]!r} was used twice" if twice else None


class ToolCoverageCheck:
    """Whether the tools that the conversation is about were used."""

    name = "tool_coverage"

    def __init__(self, settings: ToolCoverage) -> None:
        self._patterns, self._at_least = settings.tools, settings.at_least

    async def objection(self, finished: Finished, notes: JSONObject) -> str | None:
        """Name the tools that were used and how many were wanted."""
        ran = {entry["name"] for entry in finished.tool_results if entry["error"] is None}
        if self._patterns:
            ran = {name for name in ran if any(_covers(pattern, name) for pattern in self._patterns)}
        if len(ran) >= self._at_least:
            return None
        wanted = ", ".join(self._patterns) or "the tools offered"
        return f"{len(ran)} of {wanted} ran without error ({_listed(ran)}), at least {self._at_least} must"


def _covers(pattern: str, name: str) -> bool:
    namespace = pattern.removesuffix(f"{TOOL_NAMESPACE_SEP}*")
    return name == pattern if namespace == pattern else name.startswith(f"{namespace}{TOOL_NAMESPACE_SEP}")


def _is_real(entry: JSONObject) -> bool:
    return "injected" not in entry["metadata"]


def _told(entries: Iterable[JSONObject], what: str, at_most: int) -> str | None:
    found = list(entries)
    if len(found) <= at_most:
        return None
    shown = ", ".join(f"{entry['name']} ({entry['error_type']})" for entry in found[:_SHOWN])
    return f"{len(found)} calls {what}, at most {at_most} may: {shown}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
