"""From the calls of one assistant message to results: what is refused, what the engine runs, what the record keeps."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from conversations.messages import JSONObject, Message
from conversations.policy.conflict import conflicts
from conversations.policy.dedup import copy_of, duplicates
from conversations.policy.limits import Limits, surplus
from conversations.selection import ToolSelection
from conversations.wire.openai import ParsedCall, parse_calls
from engines.schemas import compiled, problems
from engines.tool import DEBUG, ErrorType, ToolCall, ToolResult

NOT_RUN = "not_run"  # the metadata key of a result that was given without asking an engine
_NAMES_SHOWN = 100


@dataclass(slots=True)
class Plan:
    """A batch, decided before any of it runs: calls for the engine, for others, results of refused ones, and copies.

    `copies` names, for each call that says the same as an earlier one of the batch, that earlier one.
    """

    calls: list[ToolCall] = field(default_factory=list)
    external: list[str] = field(default_factory=list)
    refused: dict[str, ToolResult] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)

    def merged(
        self, call_ids: Iterable[str], results: Sequence[ToolResult], known: Mapping[str, JSONObject]
    ) -> list[JSONObject]:
        """The record's entries, in call order, of all calls but those that wait for somebody outside.

        `results` are those of `calls`, `known` the entries of calls that were answered before.
        """
        found = {call_id: entry_of(call_id, result) for call_id, result in self.refused.items()}
        for call, result in zip(self.calls, results, strict=True):
            found[str(call.call_id)] = entry_of(str(call.call_id), result)
        for again, first in self.copies.items():
            if (source := found.get(first) or known.get(first)) is not None:
                found[again] = copy_of(source, again)
        return [found[call_id] for call_id in call_ids if call_id in found]

    def waiting(self, already: Container[str]) -> list[str]:
        """The calls that begin to wait for somebody outside, and those that say the same as one that waits."""
        copies = (again for again, first in self.copies.items() if first in self.external or first in already)
        return [*self.external, *copies]


def plan(
    message: Message,
    call_ids: Sequence[str],
    tools: ToolSelection,
    limits: Limits,
    *,
    calls_before: int,
    known: Container[str] = (),
) -> Plan:
    """Decide about these calls of a message, in decision 4's order: duplicates, conflict, limit, unknown, arguments.

    `calls_before` counts the calls that earlier messages made; `known` are those of this one that have a result or
    wait for one, so that an equal call can share it. The engine checks the arguments of its calls itself.
    """
    parsed_calls = parse_calls(message, tools.names)
    # A first one that the caller answered in the history itself has no result here to share.
    sharing = {*call_ids}
    copies = {again: first for again, first in duplicates(parsed_calls).items() if first in sharing or first in known}
    unique = [parsed for parsed in parsed_calls if parsed.call_id not in copies]
    clash = conflicts(unique, tools.takes_control)
    over = surplus([parsed.call_id for parsed in unique], limits, calls_before)
    planned = Plan(copies={again: first for again, first in copies.items() if again in call_ids})
    for parsed in unique:
        if parsed.call_id not in call_ids:
            continue
        if parsed.call_id in clash:
            planned.refused[parsed.call_id] = _refusal(parsed, tools, ErrorType.conflict, clash[parsed.call_id])
        elif parsed.call_id in over.call_ids:
            planned.refused[parsed.call_id] = _refusal(parsed, tools, ErrorType.limit, over.message)
        elif not tools.offers(parsed.wire_name):
            planned.refused[parsed.call_id] = _refusal(parsed, tools, ErrorType.unknown_tool, _unknown(parsed, tools))
        elif problem := parsed.problem or _external_problem(parsed, tools):
            planned.refused[parsed.call_id] = _refusal(parsed, tools, ErrorType.validation, problem)
        elif parsed.call is not None and tools.external(parsed.call):
            planned.external.append(parsed.call_id)
        elif parsed.call is not None:
            planned.calls.append(parsed.call)
    return planned


def refuse_all(
    message: Message, call_ids: Sequence[str], tools: ToolSelection, error_type: ErrorType, reason: str
) -> list[JSONObject]:
    """The record's entries for calls that are not run, all for the same reason."""
    return [
        entry_of(parsed.call_id, _refusal(parsed, tools, error_type, reason))
        for parsed in parse_calls(message, tools.names)
        if parsed.call_id in call_ids
    ]


def entry_of(call_id: str, result: ToolResult) -> JSONObject:
    """A result in the record's form; how it came about is in its metadata (rule U17)."""
    return {
        "call_id": call_id,
        "name": result.name,
        "result": result.result,
        "error": result.error,
        "error_type": None if result.error_type is None else result.error_type.value,
        "metadata": result.metadata | {DEBUG: result.debug} if result.debug else result.metadata,
    }


def _refusal(parsed: ParsedCall, tools: ToolSelection, error_type: ErrorType, message: str) -> ToolResult:
    name = tools.names.decode(parsed.wire_name) or parsed.wire_name
    return ToolResult(parsed.call_id, name, error=message, error_type=error_type, metadata={NOT_RUN: True})


def _external_problem(parsed: ParsedCall, tools: ToolSelection) -> str:
    """What is wrong with the arguments of an external call: nobody pauses for a call that cannot be answered."""
    if parsed.call is None or not tools.external(parsed.call):
        return ""
    overloads = [tool for tool in tools.tools if tool.qualified_name == parsed.call.qualified_name]
    told = [problems(compiled(tool.parameters), parsed.arguments) for tool in overloads]
    return "" if "" in told else "; or ".join(told)


def _unknown(parsed: ParsedCall, tools: ToolSelection) -> str:
    """Decision 6: the model is told which tools there are."""
    known = tools.wire_names()
    more = f" and {len(known) - _NAMES_SHOWN} more" if len(known) > _NAMES_SHOWN else ""
    said = f"known tools: {', '.join(known[:_NAMES_SHOWN])}{more}" if known else "there are no tools"
    return f"Unknown tool {parsed.wire_name!r}; {said}."
