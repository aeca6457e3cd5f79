"""Reading requests: whatever comes, it is a request that can be answered or a refusal in words."""

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.messages import assistant, system, tool_call, tool_message, user
from conversations.models.offline import compose_reply
from conversations.models.offline_requests import UnreadableRequest, read_request
from conversations.models.settings import OfflineSettings

A_STRING = {"type": "object", "properties": {"a": {"type": "string"}}}
VALID: dict[str, Any] = {
    "model": "m", "seed": 3, "n": 2, "logprobs": True, "tool_choice": {"type": "function", "function": {"name": "f"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "r", "schema": {"type": "object"}}},
    "tools": [{"type": "function", "function": {"name": "f", "parameters": A_STRING}}],
    "messages": [
        system("s"), user("Hi"), assistant(None, [tool_call("a", "f", "{}")]), tool_message("a", "1"), user("?"),
    ],
}  # fmt: skip
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(inner for key, child in children for inner in paths_of(child, (*path, key)))]


def answered(body: Any, turns: int | None = None) -> None:
    asked, model, _ = read_request(orjson.dumps(body), "s")
    orjson.dumps(
        [each.message for each in compose_reply(asked, OfflineSettings(turns=turns), model=model).alternatives]
    )


def test_a_valid_request_is_read() -> None:
    asked, model, wants_stream = read_request(orjson.dumps(VALID), "session-1")

    assert not wants_stream
    assert (model, asked.session_id, asked.seed, asked.candidates, asked.logprobs) == ("m", "session-1", 3, 2, True)
    assert (asked.messages, asked.tools) == (VALID["messages"], VALID["tools"])
    assert (asked.tool_choice, asked.response_format) == (VALID["tool_choice"], VALID["response_format"])


@given(st.sampled_from(paths_of(VALID)[1:]), JUNK, st.sampled_from([None, 1, 5]))
def test_any_part_may_be_anything(path: tuple[Any, ...], junk: Any, turns: int | None) -> None:
    body = copy.deepcopy(VALID)
    if path[0] != "tool_choice":
        del body["tool_choice"]
    node = body
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = junk
    try:
        answered(body, turns)
    except UnreadableRequest:
        return


@pytest.mark.parametrize(
    "part",
    [{"tool_choice": "get"}, {"tool_choice": {"type": "x"}}, {"tool_choice": 7}, {"response_format": "json"}, {"n": 0},
     {"n": "2"}, {"seed": "x"}, {"response_format": {"type": "json_schema", "json_schema": []}},
     {"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]}],
)  # fmt: skip
def test_options_of_wrong_shape_are_refused_in_words(part: dict[str, Any]) -> None:
    with pytest.raises(UnreadableRequest, match=next(iter(part))):
        answered(VALID | part)
