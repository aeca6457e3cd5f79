"""Answers of model servers that are not what they should be, and what the record of each conversation must hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

OSLO = '{"city":"Oslo"}'
DEEP = '{"city":' * 100 + "1" + "}" * 100


@dataclass(frozen=True)
class Case:
    """What a server says first (later it says "done"), and what the record must hold."""

    said: bytes
    outcome: str = "ok"
    """`ok`, or the type of the record's error."""
    tools: tuple[str | None, ...] = ()
    """The error types of its tool results."""
    status: str = "200 OK"


def completion(message: Any, finish_reason: Any = "stop", **more: Any) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    return orjson.dumps({"id": "x", "model": "m", "choices": [choice], "usage": usage} | more)


def calling(*calls: Any, finish_reason: Any = "tool_calls", content: Any = None) -> bytes:
    return completion({"role": "assistant", "content": content, "tool_calls": list(calls)}, finish_reason)


def call(name: Any = "w__get", arguments: Any = OSLO, **more: Any) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}} | more


def saying(content: Any, finish_reason: Any = "stop", **more: Any) -> bytes:
    return completion({"role": "assistant", "content": content, **more}, finish_reason)


MALFORMED = "malformed_reply"
WRONG = ("validation",)
RAN = (None,)
OPENAI: Mapping[str, Case] = {
    "arguments cut off": Case(calling(call(arguments='{"city":"Os')), tools=WRONG),
    "arguments empty": Case(calling(call(arguments="")), tools=WRONG),
    "arguments null": Case(calling(call(arguments=None)), tools=WRONG),
    "arguments a list": Case(calling(call(arguments="[]")), tools=WRONG),
    "arguments the word null": Case(calling(call(arguments="null")), tools=WRONG),
    "arguments a number": Case(calling(call(arguments=7)), tools=WRONG),
    "arguments an object already": Case(calling(call(arguments={"city": "Oslo"})), tools=RAN),
    "arguments encoded twice": Case(calling(call(arguments=orjson.dumps(OSLO).decode())), tools=RAN),
    "arguments of a wrong type": Case(calling(call(arguments='{"city":7}')), tools=WRONG),
    "arguments nobody declared": Case(calling(call(arguments='{"city":"Oslo","x":1}')), tools=WRONG),
    "arguments a hundred levels deep": Case(calling(call(arguments=DEEP)), tools=WRONG),
    "arguments with NaN": Case(calling(call(arguments='{"city":NaN}')), tools=WRONG),
    "arguments in a code fence": Case(calling(call(arguments=f"```json\n{OSLO}\n```")), tools=WRONG),
    "arguments in Python": Case(calling(call(arguments="{'city': 'Oslo'}")), tools=WRONG),
    "arguments with a key twice": Case(calling(call(arguments='{"city":1,"city":"Oslo"}')), tools=RAN),
    "arguments with half a character": Case(calling(call(arguments='{"city":"\\ud800"}')), tools=WRONG),
    "arguments with a number of a thousand digits": Case(
        calling(call(arguments=f'{{"city":{"9" * 999}}}')), tools=WRONG
    ),
    "a tool that is not": Case(calling(call("w__nope")), tools=("unknown_tool",)),
    "a tool by its qualified name": Case(calling(call("w::get")), tools=RAN),
    "a tool name in spaces": Case(calling(call(" w__get ")), tools=RAN),
    "a tool name of 500 characters": Case(calling(call("x" * 500)), tools=("unknown_tool",)),
    "a tool name that no server would take back": Case(calling(call("wéather\n")), tools=("unknown_tool",)),
    "a tool name that is blank": Case(calling(call("  ")), MALFORMED),
    "a tool name that is null": Case(calling(call(None)), MALFORMED),
    "no call id": Case(calling({"type": "function", "function": {"name": "w__get", "arguments": OSLO}}), tools=RAN),
    "call id null": Case(calling(call(id=None)), tools=RAN),
    "call id empty": Case(calling(call(id="")), tools=RAN),
    "call id a number": Case(calling(call(id=7)), tools=RAN),
    "call id of a thousand characters": Case(calling(call(id="c" * 1000)), tools=RAN),
    "call id twice": Case(calling(call(), call(arguments='{"city":"Lima"}')), tools=(None, None)),
    "the same call twice": Case(calling(call(), call(id="d")), tools=(None, None)),
    "more calls than a turn may make": Case(
        calling(*[call(arguments=f'{{"city":"{number}"}}', id=str(number)) for number in range(12)]),
        tools=(None,) * 10 + ("limit",) * 2,
    ),
    "a thousand calls": Case(calling(*[call(id=str(number)) for number in range(1000)]), MALFORMED),
    "calls and a text": Case(calling(call(), content="Let me see."), tools=RAN),
    "calls and the reason stop": Case(calling(call(), finish_reason="stop"), tools=RAN),
    "calls cut off": Case(calling(call(arguments='{"ci'), finish_reason="length"), "truncated_tool_call", ("limit",)),
    "calls withheld": Case(calling(call(), finish_reason="content_filter"), "content_filter", ("permission",)),
    "calls that are an object": Case(saying(None, tool_calls={}), MALFORMED),
    "calls that are null inside": Case(calling(None), MALFORMED),
    "a call without a function": Case(calling({"id": "c", "type": "function"}), MALFORMED),
    "no calls and no text": Case(calling(), MALFORMED),
    "the reason tool_calls without any": Case(saying("Hello.", "tool_calls")),
    "no reason": Case(saying("Hello.", None)),
    "a reason that nobody knows": Case(saying("Hello.", "tired"), MALFORMED),
    "a reason that is an object": Case(saying("Hello.", {"why": 1}), MALFORMED),
    "a text cut off": Case(saying("Hel", "length"), "truncated_reply"),
    "a text withheld": Case(saying("Hel", "content_filter"), "content_filter"),
    "a refusal": Case(saying(None, refusal="I will not."), "refusal"),
    "content null": Case(saying(None), MALFORMED),
    "content empty": Case(saying(""), MALFORMED),
    "content white space": Case(saying(" \n"), MALFORMED),
    "content a number": Case(saying(7), MALFORMED),
    "content in parts": Case(saying([{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo."}])),
    "content in parts that are none": Case(saying([{"type": "image"}]), MALFORMED),
    "content with half a character": Case(saying("x").replace(b'"x"}', b'"\\ud800"}', 1), MALFORMED),
    "a message of the user's": Case(completion({"role": "user", "content": "Hello."}), MALFORMED),
    "a message that is text": Case(completion("Hello."), MALFORMED),
    "a message that is null": Case(completion(None), MALFORMED),
    "no choices": Case(b'{"id":"x"}', MALFORMED),
    "choices empty": Case(b'{"choices":[]}', MALFORMED),
    "choices null": Case(b'{"choices":null}', MALFORMED),
    "a choice that is null": Case(b'{"choices":[null]}', MALFORMED),
    "usage null": Case(completion({"role": "assistant", "content": "Hello."}, usage=None)),
    "usage of texts": Case(completion({"role": "assistant", "content": "Hello."}, usage={"prompt_tokens": "many"})),
    "usage below zero": Case(completion({"role": "assistant", "content": "Hello."}, usage={"prompt_tokens": -7})),
    "an error with status 200": Case(b'{"error":{"message":"the engine died","type":"server_error"}}', MALFORMED),
    "nothing": Case(b"", MALFORMED),
    "no JSON": Case(b"Hello.", MALFORMED),
    "a page": Case(b"<html><body>502 Bad Gateway</body></html>", MALFORMED),
    "JSON cut off": Case(saying("Hello.")[:-20], MALFORMED),
    "a list": Case(b"[]", MALFORMED),
    "a text": Case(b'"Hello."', MALFORMED),
    "bytes that are no characters": Case(b'{"choices":"\xff\xfe"}', MALFORMED),
    "JSON ten thousand levels deep": Case(b"[" * 10_000 + b"]" * 10_000, MALFORMED),
    "a redirect": Case(b"", "model_refused_request", status="302 Found"),
    "no such model": Case(b'{"error":{"message":"no model m"}}', "model_refused_request", status="404 Not Found"),
    "no key": Case(b"<html>who are you?</html>", "authentication_failed", status="401 Unauthorized"),
    "too much": Case(b"", "rate_limited", status="429 Too Many Requests"),
    "out of order": Case(b"\xff\xfe\x00", "model_unavailable", status="500 Oh"),
    "too long": Case(
        b'{"error":{"code":"context_length_exceeded","message":"too long"}}',
        "context_overflow",
        status="400 Bad Request",
    ),
    "a status that is none": Case(b"", "model_unavailable", status="799 What"),
}


def spoken(*blocks: Any, stop_reason: Any = "end_turn", **more: Any) -> bytes:
    usage = {"input_tokens": 5, "output_tokens": 2}
    said = {"id": "x", "type": "message", "role": "assistant", "model": "m", "content": list(blocks)}
    return orjson.dumps(said | {"stop_reason": stop_reason, "usage": usage} | more)


def use(name: Any = "w__get", given: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "c", "name": name, "input": {"city": "Oslo"} if given is None else given} | more


def text(said: Any) -> dict[str, Any]:
    return {"type": "text", "text": said}


ANTHROPIC: Mapping[str, Case] = {
    "input a text": Case(spoken(use(given='{"city":"Oslo"}'), stop_reason="tool_use"), tools=RAN),
    "input cut off": Case(spoken(use(given='{"city":"Os'), stop_reason="tool_use"), tools=WRONG),
    "input a list": Case(spoken(use(given=[]), stop_reason="tool_use"), tools=WRONG),
    "input of a wrong type": Case(spoken(use(given={"city": 7}), stop_reason="tool_use"), tools=WRONG),
    "no input": Case(spoken({"type": "tool_use", "id": "c", "name": "w__get"}, stop_reason="tool_use"), tools=WRONG),
    "a tool that is not": Case(spoken(use("w__nope"), stop_reason="tool_use"), tools=("unknown_tool",)),
    "a tool without a name": Case(spoken(use(None), stop_reason="tool_use"), MALFORMED),
    "no id": Case(spoken({"type": "tool_use", "name": "w__get", "input": {"city": "Oslo"}}), tools=RAN),
    "an id twice": Case(spoken(use(), use(given={"city": "Lima"}), stop_reason="tool_use"), tools=(None, None)),
    "a use cut off": Case(spoken(use(given={}), stop_reason="max_tokens"), "truncated_tool_call", ("limit",)),
    "a use withheld": Case(spoken(use(), stop_reason="refusal"), "refusal", ("permission",)),
    "a text cut off": Case(spoken(text("Hel"), stop_reason="max_tokens"), "truncated_reply"),
    "a refusal": Case(spoken(text("No."), stop_reason="refusal"), "refusal"),
    "the reason tool_use without any": Case(spoken(text("Hello."), stop_reason="tool_use")),
    "a turn that pauses": Case(spoken(text("One moment."), stop_reason="pause_turn")),
    "a turn that pauses without a word": Case(spoken(stop_reason="pause_turn")),
    "a reason that nobody knows": Case(spoken(text("Hello."), stop_reason="tired"), MALFORMED),
    "content null": Case(spoken(content=None), MALFORMED),
    "content a text": Case(spoken(content="Hello."), MALFORMED),
    "content empty": Case(spoken(), MALFORMED),
    "a block that is null": Case(spoken(None), MALFORMED),
    "a block of numbers": Case(spoken(text(7)), MALFORMED),
    "a block that nobody knows": Case(spoken({"type": "dance"}, text("Hello."))),
    "thinking alone": Case(spoken({"type": "thinking", "thinking": "hm", "signature": "s"}), MALFORMED),
    "usage null": Case(spoken(text("Hello."), usage=None)),
    "an error with status 200": Case(
        b'{"type":"error","error":{"type":"overloaded_error","message":"full"}}', "model_unavailable"
    ),
    "nothing": Case(b"", MALFORMED),
    "a page": Case(b"<html></html>", MALFORMED),
    "another provider's answer": Case(saying("Hello."), MALFORMED),
    "overloaded": Case(b"", "model_unavailable", status="529 Overloaded"),
}


def events(*sent: Any) -> bytes:
    return b"".join(b"data: " + (each if isinstance(each, bytes) else orjson.dumps(each)) + b"\n\n" for each in sent)


def piece(delta: Any, finish_reason: Any = None) -> dict[str, Any]:
    return {"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def part(arguments: Any, index: Any = 0, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": {"arguments": arguments} | more, "id": "c"}]}


END = b"[DONE]"
STREAMED: Mapping[str, Case] = {
    "calls in pieces": Case(
        events(piece(part('{"ci', name="w__get")), piece(part('ty":"Oslo"}')), piece({}, "tool_calls"), END), tools=RAN
    ),
    "calls that stop in the middle": Case(
        events(piece(part('{"ci', name="w__get")), piece({}, "length"), END), "truncated_tool_call", ("limit",)
    ),
    "calls without a name": Case(events(piece(part("{}")), piece({}, "tool_calls"), END), MALFORMED),
    "an index that is none": Case(
        events(piece(part("{}", index="one", name="w__get")), piece({}, "stop"), END), tools=WRONG
    ),
    "a stream that only ends": Case(events(END), MALFORMED),
    "a stream without an end": Case(events(piece({"content": "Hel"})), "model_unavailable"),
    "an event that is no JSON": Case(events(piece({"content": "Hel"}), b"{", END), MALFORMED),
    "an error in the middle": Case(
        events(piece({"content": "Hel"}), {"error": {"message": "died"}}), "model_unavailable"
    ),
    "a text that is an object": Case(events(piece({"content": {}}), piece({}, "stop"), END), MALFORMED),
    "choices null": Case(events({"choices": None}, piece({"content": "Hi."}, "stop"), END)),
    "no stream at all": Case(saying("Hello.")),
}
