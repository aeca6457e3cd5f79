"""Reading completions: a table of bad bodies, each ending in a typed error, never in another exception (F20, F21)."""

import copy
import itertools
import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.errors import MalformedReply
from conversations.models.model import ModelReply
from conversations.models.replies import read_completion, reply_of
from tests.unit.conversations.models.conftest import GOOD


def read(body: Any, **options: Any) -> ModelReply:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    numbers = itertools.count()
    return reply_of(read_completion(data), model="m", make_call_id=lambda: f"made_{next(numbers)}", **options)


def with_choice(**fields: Any) -> dict[str, Any]:
    return {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"} | fields]
    }


def with_message(**fields: Any) -> dict[str, Any]:
    return with_choice(message={"role": "assistant", "content": None} | fields)


def with_call(**fields: Any) -> dict[str, Any]:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}} | fields
    return with_message(tool_calls=[call])


BAD_BODIES: dict[str, Any] = {
    "empty": b"",
    "blank": b" \n ",
    "html": b"<html><body>502 Bad Gateway</body></html>",
    "text": b"upstream connect error",
    "half": orjson.dumps(GOOD)[:-10],
    "two documents": orjson.dumps(GOOD) * 2,
    "single quotes": b"{'choices': []}",
    "NaN": b'{"choices": NaN}',
    "not UTF-8": b'{"choices": "\xff\xfe"}',
    "lone surrogate": b'{"choices": "\\ud800"}',
    "UTF-16": json.dumps(GOOD).encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf" + orjson.dumps(GOOD),
    "NUL": b"\x00" * 64,
    "SSE stream": b'data: {"choices": []}\n\ndata: [DONE]\n\n',
    "deep lists": b"[" * 100_000,
    "deep closed": b'{"choices":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "deep objects": b'{"a":' * 100_000,
    "number beyond all numbers": b'{"choices": [{"message": {"content": "x"}}], "n": 1' + b"0" * 400 + b"}",
    "null": None,
    "true": True,
    "number": 7,
    "string": "hello",
    "list": [GOOD],
    "empty object": {},
    "no choices": {"id": "x", "usage": {}},
    "choices null": {"choices": None},
    "choices empty": {"choices": []},
    "choices object": {"choices": {"0": GOOD["choices"]}},
    "choices text": {"choices": "hello"},
    "choice null": {"choices": [None]},
    "choice text": {"choices": ["hello"]},
    "choice list": {"choices": [[]]},
    "choice empty": {"choices": [{}]},
    "message missing": {"choices": [{"finish_reason": "stop"}]},
    "message null": with_choice(message=None),
    "message text": with_choice(message="hello"),
    "message list": with_choice(message=[{"content": "x"}]),
    "message empty": with_choice(message={}),
    "delta instead of message": {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]},
    "legacy text completion": {"choices": [{"text": "hello", "finish_reason": "stop"}]},
    "content null": with_message(),
    "content empty": with_message(content=""),
    "content blank": with_message(content="\n\n "),
    "content number": with_message(content=7),
    "content true": with_message(content=True),
    "content object": with_message(content={"text": "x"}),
    "content list of numbers": with_message(content=[1, 2]),
    "content parts without text": with_message(content=[{"type": "image_url", "image_url": {"url": "x"}}]),
    "content empty parts": with_message(content=[]),
    "role user": with_choice(message={"role": "user", "content": "x"}),
    "role number": with_choice(message={"role": 1, "content": "x"}),
    "refusal object": with_message(refusal={"why": "x"}),
    "finish_reason unknown": with_choice(finish_reason="gave_up"),
    "finish_reason error": with_choice(finish_reason="error"),
    "finish_reason number": with_choice(finish_reason=1),
    "finish_reason list": with_choice(finish_reason=["stop"]),
    "finish_reason empty": with_choice(finish_reason=""),
    "length and nothing said": with_choice(message={"content": None}, finish_reason="length"),
    "filtered and nothing said": with_choice(message={"content": None}, finish_reason="content_filter"),
    "tool_calls text": with_message(tool_calls="f()"),
    "tool_calls object": with_message(tool_calls={"f": {}}),
    "tool_calls number": with_message(tool_calls=1),
    "tool_calls empty": with_message(tool_calls=[]),
    "tool call null": with_message(tool_calls=[None]),
    "tool call text": with_message(tool_calls=["f"]),
    "tool call empty": with_message(tool_calls=[{}]),
    "function missing": with_message(tool_calls=[{"id": "a", "type": "function"}]),
    "function null": with_call(function=None),
    "function text": with_call(function="f"),
    "function list": with_call(function=["f"]),
    "name missing": with_call(function={"arguments": "{}"}),
    "name null": with_call(function={"name": None, "arguments": "{}"}),
    "name empty": with_call(function={"name": "", "arguments": "{}"}),
    "name blank": with_call(function={"name": "  ", "arguments": "{}"}),
    "name number": with_call(function={"name": 7, "arguments": "{}"}),
    "one bad call among good": with_message(tool_calls=[{"id": "a", "function": {"name": "f"}}, {"id": "b"}]),
    "a million calls": with_message(tool_calls=[{"id": "a", "function": {"name": "f"}}] * 100_000),
}


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES.keys())
def test_f20_a_bad_body_is_a_malformed_reply(body: Any) -> None:
    with pytest.raises(MalformedReply) as caught:
        read(body)

    assert caught.value.retryable
    assert caught.value.type == "malformed_reply"
    assert len(caught.value.message) < 300


def test_f20_the_same_bad_body_gives_the_same_message() -> None:
    messages = set()
    for _ in range(3):
        with pytest.raises(MalformedReply) as caught:
            read(with_message())
        messages.add(str(caught.value))

    assert len(messages) == 1


def test_f20_a_reply_cut_by_its_length_limit_before_saying_anything_says_so() -> None:
    with pytest.raises(MalformedReply, match="it ended for 'length'"):
        read(with_choice(message={"content": None, "reasoning_content": "hmm"}, finish_reason="length"))


STRANGE_BUT_GOOD: dict[str, tuple[Any, dict[str, Any]]] = {
    "nothing but the message": ({"choices": [{"message": {"content": "x"}}]}, {"content": "x"}),
    "finish_reason null": (with_choice(finish_reason=None), {"content": "x"}),
    "unknown fields": (with_choice(message={"content": "x", "weird": {"a": 1}}) | {"weird": 1}, {"content": "x"}),
    "role null": (with_choice(message={"role": None, "content": "x"}), {"content": "x"}),
    "tool_calls null": (with_message(content="x", tool_calls=None), {"content": "x"}),
    "duplicate keys": (b'{"choices": 1, "choices": [{"message": {"content": "x"}}]}', {"content": "x"}),
}


@pytest.mark.parametrize(("body", "expected"), STRANGE_BUT_GOOD.values(), ids=STRANGE_BUT_GOOD.keys())
def test_strange_bodies_that_can_be_understood_are(body: Any, expected: dict[str, Any]) -> None:
    reply = read(body)

    assert reply.message == {"role": "assistant"} | expected
    assert reply.finish_reason == "stop"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("eos_token", "stop"),
        ("tool_calls", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
    ],
)
def test_what_servers_call_their_finish_reasons(said: str, meant: str) -> None:
    assert read(with_choice(finish_reason=said)).finish_reason == meant


@pytest.mark.parametrize("said", ["stop", "tool_calls", "function_call", None])
def test_a_message_with_calls_finished_for_its_calls(said: str | None) -> None:
    body = with_call()
    body["choices"][0]["finish_reason"] = said

    assert read(body).finish_reason == "tool_calls"


def test_f19_calls_cut_by_the_length_limit_are_marked_so() -> None:
    body = with_call(function={"name": "f", "arguments": '{"city": "Os'})
    body["choices"][0]["finish_reason"] = "length"

    assert read(body).finish_reason == "length"


@pytest.mark.parametrize(
    "usage",
    [None, 7, "x", [], {}, {"prompt_tokens": None}, {"prompt_tokens": -1}, {"prompt_tokens": "12"},
     {"prompt_tokens": 1.5}, {"prompt_tokens": True}, {"prompt_tokens": 10**18}],
)  # fmt: skip
def test_usage_that_makes_no_sense_counts_nothing(usage: Any) -> None:
    reply = read(with_choice() | {"usage": usage})

    assert (reply.input_tokens, reply.output_tokens) == (0, 0)


@pytest.mark.parametrize("model", [None, 7, "", []])
def test_a_server_that_does_not_name_its_model_gets_the_asked_name(model: Any) -> None:
    assert read(with_choice() | {"model": model}).model == "m"


@pytest.mark.parametrize(
    "logprobs", [None, 7, {}, {"content": None}, {"content": [{}]}, {"content": [{"logprob": "x"}]}]
)
def test_d26_logprobs_that_make_no_sense_are_none(logprobs: Any) -> None:
    reply = read(with_choice(logprobs=logprobs), wants_alternatives=True)

    assert [each.logprob for each in reply.alternatives] == [None]


def test_d26_unusable_candidates_are_left_out() -> None:
    body = {"choices": [{"message": 7}, *with_choice()["choices"], {"message": {"content": ""}}]}

    reply = read(body, wants_alternatives=True)

    assert [each.message["content"] for each in reply.alternatives] == ["x"]
    assert reply.message is reply.alternatives[0].message


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(inner for key, child in children for inner in paths_of(child, (*path, key)))]


VALID = {
    "id": "x", "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 2}, "choices": [
        {"index": 0, "finish_reason": "tool_calls", "logprobs": {"content": [{"token": "a", "logprob": -1.0}]},
         "message": {
            "role": "assistant", "content": "Let me look.", "refusal": None, "reasoning_content": "hm", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"city": "Oslo"}'}},
                {"id": "call_2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ]}},
        {"index": 1, "finish_reason": "stop", "message": {"role": "assistant", "content": "x"}},
    ],
}  # fmt: skip
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_f20_a_body_with_any_part_replaced_gives_a_reply_or_a_typed_error(data: st.DataObject) -> None:
    body = copy.deepcopy(VALID)
    for path in data.draw(st.lists(st.sampled_from(paths_of(VALID)[1:]), min_size=1, max_size=3)):
        node: Any = body
        try:
            for key in path[:-1]:
                node = node[key]
            if isinstance(node, dict | list) and isinstance(node, dict) == isinstance(path[-1], str):
                node[path[-1]] = data.draw(JUNK)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier replacement took that part away
    try:
        reply = read(body, wants_alternatives=True)
    except MalformedReply:
        return
    orjson.dumps(reply.message)
    assert reply.finish_reason in {"stop", "tool_calls", "length", "content_filter"}


@given(st.binary(max_size=200))
def test_f20_any_bytes_give_a_typed_error(data: bytes) -> None:
    with pytest.raises(MalformedReply):
        read(data)


@given(st.integers(0, len(orjson.dumps(VALID)) - 1), st.integers(0, 255))
def test_f20_a_body_with_one_byte_changed_gives_a_reply_or_a_typed_error(place: int, value: int) -> None:
    data = bytearray(orjson.dumps(VALID))
    data[place] = value
    try:
        orjson.dumps(read(bytes(data)).message)
    except MalformedReply:
        return
