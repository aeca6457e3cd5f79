"""Anthropic's Messages shapes: our history as its turns, its content blocks as a message of ours (E14, E15)."""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from types import MappingProxyType
from typing import Any

import orjson

from conversations.encoding import encode_json
from conversations.errors import MalformedReply
from conversations.messages import JSONObject, Message, text_of, tool_calls_of
from conversations.wire.names import WireNames
from conversations.wire.openai import EMPTY_RESULT_TEXT, normalise_assistant
from engines.tool import Tool

# Content blocks of a reply that are neither text nor calls (thinking, what the server's own tools did): the server
# wants them back as they were, so the history keeps them beside our own form of the message.
# What a tool's metadata may say that this API knows and OpenAI's does not (rule A21).
_EXTRA_KEYS = ("input_examples", "cache_control", "defer_loading")
VERBATIM_KEY = "anthropic_content"
CACHED = b'"cache_control":{"type":"ephemeral"}'
_EMPTY_TEXT = "(empty)"
_NONE: Mapping[str, JSONObject] = MappingProxyType({})


@dataclass(slots=True)
class Turns:
    """A history in Anthropic's form, made message by message as it grows; each message is encoded once in its life."""

    system: list[str] = field(default_factory=list)
    _sources: list[Message] = field(default_factory=list)
    _blocks: list[tuple[str, list[bytes]]] = field(default_factory=list)

    def take(self, messages: Sequence[Message], failed: Collection[str]) -> None:
        """Follow the history; what was translated already stays, unless the history was changed before it."""
        known = 0
        while known < min(len(messages), len(self._sources)) and self._sources[known] is messages[known]:
            known += 1
        if known < len(self._sources):
            known = 0
            for kept in (self.system, self._sources, self._blocks):
                kept.clear()
        for message in messages[known:]:
            self._sources.append(message)
            if message.get("role") in {"system", "developer"}:
                self.system.append(text_of(message))
            else:
                self._blocks.append(_translated(message, failed))

    def encoded(self, *, mark_cache: bool) -> bytes:
        """The `messages` array; with `mark_cache` its last block ends the part that the server may keep."""
        turns = list(self._merged())
        if mark_cache and turns:
            role, blocks = turns[-1]
            turns[-1] = (role, [*blocks[:-1], blocks[-1][:-1] + b"," + CACHED + b"}"])
        return b"[" + b",".join(_turn(role, blocks) for role, blocks in turns) + b"]"

    def _merged(self) -> Iterator[tuple[str, list[bytes]]]:
        """Roles alternate: what one role says in a row is one turn (results of a batch above all)."""
        for role, group in groupby(self._blocks, key=lambda each: each[0]):
            blocks = [block for _, own in group for block in own]
            if blocks:
                yield role, blocks


def tool_definitions_of(tools: Iterable[JSONObject], extras: Mapping[str, JSONObject] = _NONE) -> list[JSONObject]:
    """OpenAI's function tools as `{name, description?, input_schema}`, with what `tool_extras` found for them."""
    return [_definition(tool["function"]) | extras.get(tool["function"]["name"], {}) for tool in tools]


def tool_extras(tools: Iterable[Tool], names: WireNames) -> dict[str, JSONObject]:
    """What the tools' metadata says for this API alone, by wire name: of overloads, what the first one says."""
    extras: dict[str, JSONObject] = {}
    for tool in tools:
        own = {key: tool.metadata[key] for key in _EXTRA_KEYS if tool.metadata.get(key) is not None}
        if own:
            extras.setdefault(names.encode(tool.qualified_name), own)
    return extras


def tool_choice_of(choice: Any) -> JSONObject | None:
    """OpenAI's `tool_choice` in Anthropic's words; None leaves it to the server."""
    if isinstance(choice, dict):
        return {"type": "tool", "name": choice["function"]["name"]}
    return {"auto": {"type": "auto"}, "none": {"type": "none"}, "required": {"type": "any"}}.get(choice or "")


def message_of(
    content: Any,
    *,
    make_call_id: Callable[[], str],
    taken_ids: Container[str] = (),
    keep_reasoning: bool = True,
    may_be_empty: bool = False,
) -> Message:
    """A reply's content blocks as a message of the history; MalformedReply for what is none.

    `may_be_empty` is said of a reply that was paused or withheld before it said anything.
    """
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise MalformedReply("the reply's content is no list of blocks")
    calls = [_call_of(block) for block in content if block.get("type") == "tool_use"]
    raw: JSONObject = {
        "role": "assistant",
        "content": "".join(_text_in(block, "text") for block in content if block.get("type") == "text"),
        "tool_calls": calls or None,
    }
    thought = "".join(_text_in(block, "thinking") for block in content if block.get("type") == "thinking")
    if thought:
        raw["reasoning_content"] = thought
    if may_be_empty and not calls and not raw["content"].strip():
        message: Message = {"role": "assistant", "content": ""}
    else:
        message = normalise_assistant(raw, make_call_id, taken_ids=taken_ids, keep_reasoning=keep_reasoning)
    if keep_reasoning and any(block.get("type") not in {"text", "tool_use"} for block in content):
        message[VERBATIM_KEY] = _with_ids(content, message)
    return message


def _translated(message: Message, failed: Collection[str]) -> tuple[str, list[bytes]]:
    role = message.get("role")
    if role == "tool":
        return "user", [_result_block(message, failed)]
    if role == "assistant":
        return "assistant", _assistant_blocks(message)
    return "user", [_text_block(text_of(message) or _EMPTY_TEXT)]


def _result_block(message: Message, failed: Collection[str]) -> bytes:
    call_id = message["tool_call_id"]
    block: JSONObject = {"type": "tool_result", "tool_use_id": call_id, "content": text_of(message)}
    block["content"] = block["content"] or EMPTY_RESULT_TEXT
    if call_id in failed:
        block["is_error"] = True
    return encode_json(block)


def _assistant_blocks(message: Message) -> list[bytes]:
    kept = message.get(VERBATIM_KEY)
    if isinstance(kept, list):
        return [encode_json(block) for block in kept]
    said = text_of(message) or str(message.get("refusal") or "")
    # Text that is only white space is refused, and so is white space at the end of the last turn.
    blocks = [_text_block(said.rstrip())] if said.strip() else []
    for call in tool_calls_of(message):
        arguments = _arguments_of(call["function"].get("arguments"))
        block = {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments}
        blocks.append(encode_json(block))
    return blocks


def _arguments_of(text: Any) -> JSONObject:
    """The arguments as an object; a history that came from elsewhere may hold what is none."""
    try:
        arguments = orjson.loads(text) if isinstance(text, str | bytes) else text
    except orjson.JSONDecodeError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _text_block(text: str) -> bytes:
    return encode_json({"type": "text", "text": text})


def _turn(role: str, blocks: Sequence[bytes]) -> bytes:
    return b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks))


def _definition(function: JSONObject) -> JSONObject:
    definition = {"name": function["name"], "input_schema": function["parameters"]}
    if function.get("description"):
        definition["description"] = function["description"]
    if function.get("strict") is not None:
        definition["strict"] = function["strict"]
    return definition


def _call_of(block: JSONObject) -> JSONObject:
    name, given = block.get("name"), block.get("input")
    return {"id": block.get("id"), "type": "function", "function": {"name": name, "arguments": given}}


def _text_in(block: JSONObject, key: str) -> str:
    text = block.get(key)
    if not isinstance(text, str):
        raise MalformedReply(f"a {block['type']} block of the reply holds no text")
    return text


def _with_ids(content: Sequence[JSONObject], message: Message) -> list[JSONObject]:
    """The blocks as they came, the calls under the ids and names that the history knows them by."""
    calls = iter(tool_calls_of(message))
    return [
        block
        | {"id": call["id"], "name": call["function"]["name"], "input": _arguments_of(call["function"]["arguments"])}
        if block.get("type") == "tool_use" and (call := next(calls, None)) is not None
        else block
        for block in content
    ]
