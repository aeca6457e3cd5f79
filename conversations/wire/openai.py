"""OpenAI's chat shapes: tool definitions, an assistant's calls, and the messages that answer them (rules E14, E15)."""

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from conversations.encoding import encode_json
from conversations.errors import MalformedReply
from conversations.messages import JSONObject, Message, assistant, tool_call, tool_calls_of, tool_message
from conversations.wire.names import WireNames, legal_name
from conversations.wire.overloads import merged_description, merged_parameters
from engines.tool import Tool, ToolCall, ToolResult

MAX_ARGUMENT_DEPTH = 64
MAX_CALLS_IN_REPLY = 256
MAX_CALL_ID_LENGTH = 256
# A model's arguments that are no JSON object travel on under this key, since servers parse the history's arguments
# and refuse a conversation that holds broken ones for ever after.
MALFORMED_ARGUMENTS_KEY = "malformed_arguments"
MALFORMED_ARGUMENTS_SHOWN = 2_000
EMPTY_RESULT_TEXT = "(empty result)"
# Keys of a tool's metadata that OpenAI's function object knows (rule A21); all others stay at home.
_PASSED_THROUGH = ("strict",)


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """One call of an assistant message.

    A known tool with an arguments object has a `call`; arguments that are none leave a `problem` to tell the model; a
    tool that is not in this selection has neither.
    """

    call_id: str
    wire_name: str
    call: ToolCall | None
    problem: str | None
    arguments: JSONObject = field(default_factory=dict)

    @property
    def is_unknown(self) -> bool:
        """No tool of this selection has that name."""
        return self.call is None and self.problem is None


def tool_definition(tool: Tool, wire_name: str) -> JSONObject:
    """`{"type": "function", "function": {name, description, parameters}}`; description left out when there is none."""
    return _definition(wire_name, tool.description, _object_schema(tool.parameters), tool)


def tool_definitions(tools: Sequence[Tool], names: WireNames) -> list[JSONObject]:
    """The definitions of a selection, in its order; overloads of one name become one definition (rule D69).

    Providers want unique names and no `anyOf` at the top, so overloads are merged property by property; what they do
    not all require is optional, and the registry picks the overload by the arguments.
    """
    overloads: dict[str, list[Tool]] = {}
    for tool in tools:
        overloads.setdefault(tool.qualified_name, []).append(tool)
    return [
        tool_definition(same[0], names.encode(qualified))
        if len(same) == 1
        else _definition(names.encode(qualified), merged_description(same), merged_parameters(same), same[0])
        for qualified, same in overloads.items()
    ]


def tool_choice_of(choice: Any, names: WireNames) -> Any:
    """A job's `tool_choice` as OpenAI spells it: `ns::tool` becomes the forced function (rule U5), the rest stays."""
    if isinstance(choice, str) and choice not in {"auto", "none", "required"}:
        return {"type": "function", "function": {"name": names.encode(choice)}}
    return choice


def parse_calls(message: Message, names: WireNames) -> list[ParsedCall]:
    """The calls of a normalised assistant message, in call order; never raises for what a model wrote (rule E15)."""
    return [_parsed(entry, names) for entry in tool_calls_of(message)]


def result_message(call_id: str, result: ToolResult) -> Message:
    """The tool message for a result: text as it is, all else as JSON, an error as `Error: …`; never empty (S15)."""
    if result.error is not None:
        said = result.error if result.error.lower().startswith("error:") else f"Error: {result.error}"
        return tool_message(call_id, _encodable(said))
    if isinstance(result.result, str):
        return tool_message(call_id, _encodable(result.result) or EMPTY_RESULT_TEXT)
    return tool_message(call_id, _json_text(result.result))


def normalise_assistant(
    raw: Any, make_call_id: Callable[[], str], *, taken_ids: Container[str] = (), keep_reasoning: bool = True
) -> Message:
    """A reply's message as the history keeps it: known keys, unique ids, legal names, arguments that are JSON objects.

    `taken_ids` are the call ids of the history so far: servers that count from `call_0` each turn get new ones.
    Raises MalformedReply for wrong types and for a message that says nothing.
    """
    if not isinstance(raw, dict):
        raise MalformedReply(f"the reply's message is {_kind(raw)}, not an object")
    role = raw.get("role")
    if role is not None and role != "assistant":
        raise MalformedReply(f"the reply's message has role {str(role)[:40]!r}, not 'assistant'")
    text = _text(raw.get("content"), "content")
    refusal = _text(raw.get("refusal"), "refusal")
    calls = _normalised_calls(raw.get("tool_calls"), make_call_id, taken_ids)
    if not calls and not refusal and not (text and text.strip()):
        raise MalformedReply("the reply's message holds neither text nor tool calls")
    message = assistant(text or None, calls)
    if refusal:
        message["refusal"] = refusal
    reasoning = raw.get("reasoning_content") or raw.get("reasoning")
    if keep_reasoning and isinstance(reasoning, str):
        message["reasoning_content"] = reasoning
    return message


def call_ids_in(messages: Iterable[Message]) -> set[str]:
    """Every call id that a history already uses."""
    return {call["id"] for message in messages for call in tool_calls_of(message)}


def _definition(wire_name: str, description: str, parameters: JSONObject, tool: Tool) -> JSONObject:
    function: JSONObject = {"name": wire_name}
    if description:
        function["description"] = description
    function["parameters"] = parameters
    function.update({key: tool.metadata[key] for key in _PASSED_THROUGH if key in tool.metadata})
    return {"type": "function", "function": function}


def _object_schema(parameters: JSONObject) -> JSONObject:
    """A schema without a type, or an empty one, is refused by most servers."""
    if "properties" in parameters and "type" in parameters:
        return parameters
    return {"type": "object", "properties": {}, **parameters}


def _parsed(entry: JSONObject, names: WireNames) -> ParsedCall:
    function = entry["function"]
    call_id, wire_name = entry["id"], function["name"]
    arguments, problem = _parsed_arguments(function.get("arguments"))
    if arguments.keys() == {MALFORMED_ARGUMENTS_KEY}:
        arguments, problem = {}, _not_json("see what you sent", arguments[MALFORMED_ARGUMENTS_KEY])
    qualified = names.decode(wire_name)
    if qualified is None:
        return ParsedCall(call_id, wire_name, None, None, arguments)
    if problem is not None:
        return ParsedCall(call_id, wire_name, None, problem)
    call = ToolCall.parse(qualified, arguments, call_id)
    return ParsedCall(call_id, wire_name, call, None, arguments)


def _parsed_arguments(raw: Any) -> tuple[JSONObject, str | None]:
    """Nothing and JSON that is no object mean no arguments (rule U21); text that is no JSON is a problem."""
    if isinstance(raw, dict):
        return raw, None
    if raw is None or not str(raw).strip():
        return {}, None
    try:
        value = orjson.loads(raw)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = orjson.loads(value)  # encoded twice: a habit of small models
    except orjson.JSONDecodeError as error:
        return {}, _not_json(str(error), raw)
    if not isinstance(value, dict):
        return {}, None
    if _is_too_deep(raw, value):
        return {}, f"The arguments are nested deeper than {MAX_ARGUMENT_DEPTH} levels; send flatter ones."
    return value, None


def _not_json(cause: str, raw: Any) -> str:
    return f"The arguments are not valid JSON ({cause}): {str(raw)[:200]!r}. Send one JSON object."


def _is_too_deep(raw: str | bytes, value: Any) -> bool:
    text = raw if isinstance(raw, str) else raw.decode(errors="replace")
    if text.count("{") + text.count("[") <= MAX_ARGUMENT_DEPTH:
        return False
    layer = [value]
    for _ in range(MAX_ARGUMENT_DEPTH):
        layer = [
            child
            for node in layer
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
    return any(isinstance(node, dict | list) for node in layer)


def _text(value: Any, where: str) -> str | None:
    """A text or null; a list of text parts is joined."""
    if value is None:
        return None
    if isinstance(value, str):
        return _encodable(value)
    if isinstance(value, list) and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in value):
        return _encodable("".join(part["text"] for part in value))
    raise MalformedReply(f"the reply's {where} is {_kind(value)}, not text")


def _normalised_calls(raw: Any, make_call_id: Callable[[], str], taken_ids: Container[str]) -> list[JSONObject]:
    if raw is None:
        return []
    if not isinstance(raw, list):
        raise MalformedReply(f"the reply's tool_calls are {_kind(raw)}, not a list")
    if len(raw) > MAX_CALLS_IN_REPLY:
        raise MalformedReply(f"the reply holds {len(raw)} tool calls; at most {MAX_CALLS_IN_REPLY} are taken")
    calls: list[JSONObject] = []
    used: set[str] = set()
    for entry in raw:
        function = entry.get("function") if isinstance(entry, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"].strip():
            raise MalformedReply("a tool call of the reply names no function")
        call_id = _unique_id(entry.get("id"), make_call_id, taken_ids, used)
        used.add(call_id)
        calls.append(
            tool_call(call_id, legal_name(function["name"].strip()), _arguments_text(function.get("arguments")))
        )
    return calls


def _unique_id(raw: Any, make_call_id: Callable[[], str], taken_ids: Container[str], used: set[str]) -> str:
    """The server's id when it can stand; else one of ours (rule U19)."""
    call_id = (
        raw if isinstance(raw, str) and 0 < len(raw) <= MAX_CALL_ID_LENGTH and raw.isprintable() else make_call_id()
    )
    while call_id in used or call_id in taken_ids:
        call_id = make_call_id()
    return call_id


def _arguments_text(raw: Any) -> str:
    """The arguments as a JSON text of an object, the model's own spelling where it is one."""
    arguments, problem = _parsed_arguments(raw)
    if problem is not None:
        shown = raw if isinstance(raw, str) else str(raw)
        return _json_text({MALFORMED_ARGUMENTS_KEY: _encodable(shown)[:MALFORMED_ARGUMENTS_SHOWN]})
    if isinstance(raw, str) and arguments and raw.lstrip().startswith("{"):
        return raw
    return _json_text(arguments)


def _json_text(value: Any) -> str:
    return encode_json(value).decode()


def _encodable(text: str) -> str:
    """The text without lone surrogates, which no encoder takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _kind(value: Any) -> str:
    names = {"NoneType": "null", "dict": "an object", "list": "a list", "str": "text", "bool": "a boolean"}
    return names.get(type(value).__name__, "a number")
