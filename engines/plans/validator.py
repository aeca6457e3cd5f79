"""`tool_call_validator`: whether a plan that a model wrote can be carried out at all (rule D85)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engines.enrichments.fitting import type_fit
from engines.enrichments.texts import properties_of
from engines.nearest import hint, listed
from engines.plain import JSONObject, canonical
from engines.plans.grounding import made_up
from engines.plans.references import Reference, reference_id, references_in
from engines.schemas import compiled
from engines.tool import TOOL_NAMESPACE_SEP, Tool, ToolCall

_KEYS = frozenset({"name", "namespace", "arguments", "id", "call_id"})
_CHOICES = ("AnyOf", "OneOf")


@dataclass(frozen=True, slots=True)
class ValidPlan:
    """The calls, qualified, each with an id: its own, or `$` and its number."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class InvalidPlan:
    """Everything that is wrong, each with its place: `plan[2].arguments.city: …`."""

    problems: tuple[str, ...]


def tool_call_validator(
    plan: str | Sequence[Any], tools: Sequence[Tool], *, grounding: str | None = None
) -> ValidPlan | InvalidPlan:
    """Check a plan, a list or the text of one (also `{"plan": […]}`), against the tools that were offered.

    With a `grounding`, what the user has said, each value must be found in it, in the schema, or be a reference.
    """
    entries = _entries(plan)
    if isinstance(entries, str):
        return InvalidPlan((entries,))
    calls: list[ToolCall] = []
    problems: list[str] = []
    for position, entry in enumerate(entries):
        found = _call(entry, position, tools)
        if isinstance(found, ToolCall):
            calls.append(found)
        else:
            problems.append(f"plan[{position}]{found}")
    if not problems:
        problems += _doubles(calls)
        problems += _argument_problems(calls, {tool.qualified_name: tool for tool in reversed(tools)}, grounding)
    return InvalidPlan(tuple(problems)) if problems else ValidPlan(tuple(calls))


def _entries(plan: str | Sequence[Any]) -> Sequence[Any] | str:
    """Return the plan's entries, or why there are none."""
    read: Any = plan
    if isinstance(plan, str):
        try:
            read = json.loads(plan)
        except (ValueError, RecursionError) as error:
            return f"plan: not JSON: {error}"
    if isinstance(read, dict) and read.keys() == {"plan"}:
        read = read["plan"]
    if not isinstance(read, list | tuple):
        return f"plan: must be a list of calls, got {type(read).__name__}"
    return read or "plan: holds no call"


def _call(entry: Any, position: int, tools: Sequence[Tool]) -> ToolCall | str:
    """Return one entry as a call, or what is wrong with its form."""
    if not isinstance(entry, Mapping):
        return f": a call is an object, got {type(entry).__name__}"
    if strangers := entry.keys() - _KEYS:
        return f": unknown key {listed(sorted(map(str, strangers)))}; a call has name, arguments and id"
    for key, kind in (("name", str), ("arguments", dict)):
        if key not in entry:
            return f": {key} is missing"
        if not isinstance(entry[key], kind):
            return f".{key}: must be {'text' if kind is str else 'an object'}, got {type(entry[key]).__name__}"
    given_id = entry.get("id", entry.get("call_id"))
    if given_id is not None and not (isinstance(given_id, str) and given_id):
        return f".id: must be text, got {given_id!r}"
    tool = _tool(entry["name"], entry.get("namespace"), tools)
    if isinstance(tool, str):
        return f".name: {tool}"
    return ToolCall(tool.name, tool.namespace, entry["arguments"], given_id or f"${position + 1}")


def _tool(name: str, namespace: Any, tools: Sequence[Tool]) -> Tool | str:
    qualified = f"{namespace}{TOOL_NAMESPACE_SEP}{name}" if isinstance(namespace, str) else name
    known = {tool.qualified_name: tool for tool in tools}
    if qualified in known:
        return known[qualified]
    meant = [tool for tool in known.values() if tool.name == name and namespace is None]
    if len(meant) > 1:
        return f"{name!r} is the name of several tools ({listed(tool.qualified_name for tool in meant)}); say which"
    return meant[0] if meant else f"no tool {qualified!r}; {hint(qualified, known)}"


def _doubles(calls: Sequence[ToolCall]) -> Iterator[str]:
    ids: dict[str | None, int] = {}
    said: dict[str, int] = {}
    for position, call in enumerate(calls):
        if (first := ids.setdefault(call.call_id, position)) != position:
            yield f"plan[{position}].id: {call.call_id!r} is the id of plan[{first}] too"
        spelled = canonical([call.qualified_name, call.arguments])
        if (first := said.setdefault(spelled, position)) != position:
            yield f"plan[{position}]: the same call as plan[{first}]"


def _argument_problems(calls: Sequence[ToolCall], tools: Mapping[str, Tool], grounding: str | None) -> Iterator[str]:
    ids = {reference_id(call): position for position, call in enumerate(calls)}
    for position, call in enumerate(calls):
        tool, at = tools[call.qualified_name], f"plan[{position}].arguments"
        references = list(references_in(call.arguments, ids))
        inputs = dict(properties_of(tool.parameters))
        for name in call.arguments:
            if name not in inputs and not tool.parameters.get("patternProperties"):
                yield f"{at}: {tool.qualified_name!r} has no argument {name!r}; {hint(name, inputs)}"
        for reference in references:
            before = ids.get(reference.call_id)
            if before is None or before >= position:
                yield f"{at}{_written(reference.at)}: {reference.text!r} names no call before this one"
            elif problem := _misfit(reference, tools[calls[before].qualified_name], inputs):
                yield f"{at}{_written(reference.at)}: {problem}"
        yield from (f"{at}{problem}" for problem in _schema_problems(tool, call.arguments, references))
        if grounding is not None:
            for place, value in made_up(call.arguments, inputs, grounding, {reference.at for reference in references}):
                yield f"{at}{_written(place)}: {value!r} is nowhere in what was said"


def _misfit(reference: Reference, source: Tool, inputs: JSONObject) -> str:
    """Return why the referenced part cannot be the argument; "" when nothing in the two schemas speaks against it."""
    schema: Any = source.output_parameters
    for step in reference.steps:
        fields = dict(properties_of(schema)) if isinstance(schema, dict) else {}
        if step.isdecimal() or not fields:
            return ""
        if step not in fields:
            return f"{reference.text!r}: the result of {source.qualified_name!r} has no {step!r}; {hint(step, fields)}"
        schema = fields[step]
    wanted: Any = inputs.get(str(reference.at[0])) if len(reference.at) == 1 else None
    told = isinstance(schema, dict) and isinstance(wanted, dict) and "type" in schema and "type" in wanted
    if not told or type_fit(schema, wanted) > 0:
        return ""
    return f"{reference.text!r} is {schema['type']!r}, and {wanted['type']!r} is needed"


def _schema_problems(tool: Tool, arguments: JSONObject, references: Sequence[Reference]) -> Iterator[str]:
    """Give what the schema objects to, but for the places where a reference stands: its value is not known yet."""
    open_places = [reference.at for reference in references]
    for problem in compiled(tool.parameters).iter_errors(arguments):
        place = tuple(problem.instance_path)
        if place in open_places:
            continue
        is_choice = type(getattr(problem, "kind", None)).__name__ in _CHOICES
        if is_choice and any(each[: len(place)] == place for each in open_places):
            continue
        yield f"{_written(place)}: {problem.message}"


def _written(place: Sequence[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
