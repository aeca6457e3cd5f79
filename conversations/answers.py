"""From the calls of one assistant message to results: what is refused, what the engine runs, what the record keeps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from conversations.messages import JSONObject, Message, call_ids_of
from conversations.policy.limits import Limits, surplus
from conversations.selection import ToolSelection
from conversations.wire.openai import ParsedCall, parse_calls
from engines.schemas import compiled, problems
from engines.tool import ErrorType, ToolCall, ToolResult

NOT_RUN = "not_run"  # the metadata key of a result that was given without asking an engine
_NAMES_SHOWN = 100


@dataclass(slots=True)
class Plan:
    """A batch, decided before any of it runs: calls for the engine, for others, and results of refused ones."""

    calls: list[ToolCall] = field(default_factory=list)
    external: list[str] = field(default_factory=list)
    refused: dict[str, ToolResult] = field(default_factory=dict)

    def merged(self, call_ids: Iterable[str], results: Sequence[ToolResult]) -> list[JSONObject]:
        """The record's entries, in call order, of all calls but the external ones; `results` are those of `calls`."""
        known = dict(self.refused)
        known.update((str(call.call_id), result) for call, result in zip(self.calls, results, strict=True))
        return [entry_of(call_id, known[call_id]) for call_id in call_ids if call_id in known]


def plan(message: Message, call_ids: Sequence[str], tools: ToolSelection, limits: Limits, calls_before: int) -> Plan:
    """Decide about these calls of a message, in decision 4's order: call limit, unknown tool, arguments, split.

    `calls_before` counts the calls that earlier messages made. The engine checks the arguments of its calls itself.
    """
    over = surplus(call_ids_of(message), limits, calls_before)
    planned = Plan()
    for parsed in parse_calls(message, tools.names):
        if parsed.call_id not in call_ids:
            continue
        if parsed.call_id in over.call_ids:
            planned.refused[parsed.call_id] = _refusal(parsed, tools, ErrorType.limit, over.message)
        elif parsed.is_unknown:
            planned.refused[parsed.call_id] = _refusal(parsed, tools, ErrorType.unknown_tool, _unknown(parsed, tools))
        elif problem := parsed.problem or _external_problem(parsed, tools):
            planned.refused[parsed.call_id] = _refusal(parsed, tools, ErrorType.validation, problem)
        elif parsed.call is not None and parsed.call.qualified_name in tools.external:
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
    """A result in the record's form."""
    return {
        "call_id": call_id,
        "name": result.name,
        "result": result.result,
        "error": result.error,
        "error_type": None if result.error_type is None else result.error_type.value,
        "metadata": result.metadata,
    }


def _refusal(parsed: ParsedCall, tools: ToolSelection, error_type: ErrorType, message: str) -> ToolResult:
    name = tools.names.decode(parsed.wire_name) or parsed.wire_name
    return ToolResult(parsed.call_id, name, error=message, error_type=error_type, metadata={NOT_RUN: True})


def _external_problem(parsed: ParsedCall, tools: ToolSelection) -> str:
    """What is wrong with the arguments of an external call: nobody pauses for a call that cannot be answered."""
    name = parsed.call.qualified_name if parsed.call else ""
    if name not in tools.external:
        return ""
    overloads = [tool for tool in tools.tools if tool.qualified_name == name]
    told = [problems(compiled(tool.parameters), parsed.arguments) for tool in overloads]
    return "" if "" in told else "; or ".join(told)


def _unknown(parsed: ParsedCall, tools: ToolSelection) -> str:
    """Decision 6: the model is told which tools there are."""
    known = tools.wire_names()
    more = f" and {len(known) - _NAMES_SHOWN} more" if len(known) > _NAMES_SHOWN else ""
    said = f"known tools: {', '.join(known[:_NAMES_SHOWN])}{more}" if known else "there are no tools"
    return f"Unknown tool {parsed.wire_name!r}; {said}."
