"""Decision 1: each call id has exactly one answer, in call order, right after its message."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.errors import HistoryInvalid
from conversations.history import OpenCalls, call_ids_in, first_open_calls, mended, with_unique_call_ids
from conversations.messages import Message, assistant, call_ids_of, tool_call, tool_message, user


def calling(*call_ids: Any) -> Message:
    return assistant(None, [tool_call(call_id, "w__add", "{}") for call_id in call_ids])


def answer(call_id: str, text: str = "r") -> Message:
    return tool_message(call_id, text)


def test_a_valid_history_comes_back_as_the_same_objects() -> None:
    history = [user("hi"), calling("a", "b"), answer("a"), answer("b"), assistant("bye")]
    assert all(new is old for new, old in zip(mended(history), history, strict=True))


def test_answers_move_behind_their_message_in_call_order() -> None:
    asked = calling("a", "b")
    assert mended([asked, answer("b"), user("be concise"), answer("a")]) == [
        asked,
        answer("a"),
        answer("b"),
        user("be concise"),
    ]


def test_the_second_answer_to_a_call_is_dropped() -> None:
    assert mended([calling("a"), answer("a", "1"), answer("a", "2")]) == [calling("a"), answer("a", "1")]


def test_a_call_id_used_again_is_renamed_with_its_answer() -> None:
    mended_history = mended([calling("a"), answer("a", "1"), user("x"), calling("a"), answer("a", "2")])
    assert mended_history[3:] == [calling("call_3_0"), answer("call_3_0", "2")]


def test_an_answer_belongs_to_the_latest_message_that_made_its_call() -> None:
    mended_history = mended([calling("a"), user("x"), calling("a"), answer("a", "2"), answer("a", "1")])
    assert mended_history == [
        calling("a"),
        answer("a", "1"),
        user("x"),
        calling("call_2_0"),
        answer("call_2_0", "2"),
    ]


def test_u19_empty_and_repeated_call_ids_of_one_message_are_replaced_with_those_of_their_answers() -> None:
    mended_history = mended([calling("", "a", "a", None), answer("", "0"), answer("a", "1"), answer("a", "2")])
    assert call_ids_of(mended_history[0]) == ["call_0_0", "a", "call_0_2", "call_0_3"]
    assert mended_history[1:] == [answer("call_0_0", "0"), answer("a", "1"), answer("call_0_2", "2")]


def test_mending_leaves_the_callers_objects_alone() -> None:
    history = [calling("", ""), answer("", "0"), answer("", "1")]
    before = copy.deepcopy(history)
    mended(history)
    assert history == before


def test_arguments_that_are_an_object_become_json_text() -> None:
    call = {"id": "a", "function": {"name": "x", "arguments": {"b": 1}}}
    odd = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert mended([odd])[0]["tool_calls"] == [tool_call("a", "x", '{"b":1}')]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("hi", r"messages\[1\]: a message is an object"),
        ({"content": "x"}, r"messages\[1\]: a message is an object with a role"),
        ({"role": "robot"}, r"messages\[1\]: a message is an object with a role"),
        (answer("nobody"), r"messages\[1\]: answers the call 'nobody', which no message before it made"),
        ({"role": "tool", "content": "x"}, r"messages\[1\]: answers the call ''"),
        ({"role": "assistant", "tool_calls": {"id": "a"}}, r"messages\[1\]: tool_calls is a list"),
        ({"role": "assistant", "tool_calls": ["a"]}, r"messages\[1\]: a tool call is"),
        ({"role": "assistant", "tool_calls": [{"id": "a", "function": {}}]}, r"messages\[1\]: a tool call is"),
    ],
)
def test_what_is_no_message_is_refused(message: Any, said: str) -> None:
    with pytest.raises(HistoryInvalid, match=said):
        mended([user("hi"), message])


def test_the_first_message_with_open_calls_is_found() -> None:
    history = [calling("a"), answer("a"), calling("b", "c"), answer("b"), user("x"), calling("d")]
    assert first_open_calls(history) == OpenCalls(2, ("c",))
    assert first_open_calls(history, 3) == OpenCalls(5, ("d",))
    assert first_open_calls(history[:2]) is None


def test_unique_ids_are_left_as_they_are() -> None:
    message = calling("a", "b")
    assert with_unique_call_ids(message, {"c"}, "1") is message


def test_a_made_id_avoids_those_in_use() -> None:
    assert call_ids_of(with_unique_call_ids(calling("", "a"), {"call_1_0", "a"}, "1")) == ["call_1_0_1", "call_1_1"]


IDS = st.sampled_from(["", "a", "b", "c", "call_0_0"])
HISTORIES = st.lists(
    st.one_of(
        st.builds(lambda ids: calling(*ids), st.lists(IDS, min_size=1, max_size=4)),
        st.builds(answer, IDS, st.sampled_from(["1", "2"])),
        st.just(user("x")),
        st.just(assistant("y")),
    ),
    max_size=12,
)


@given(HISTORIES)
def test_decision_1_holds_for_every_history_that_can_be_mended(history: list[Message]) -> None:
    try:
        result = mended(history)
    except HistoryInvalid:
        return
    ids = [call_id for message in result for call_id in call_ids_of(message)]
    assert len(ids) == len(set(ids))
    assert call_ids_in(result) == set(ids)
    position = 0
    while position < len(result):
        wanted = call_ids_of(result[position])
        position += 1
        while position < len(result) and result[position]["role"] == "tool":
            call_id = result[position]["tool_call_id"]
            assert call_id in wanted
            wanted = wanted[wanted.index(call_id) + 1 :]
            position += 1
    assert [m for m in result if "content" in m and m["role"] == "user"] == [m for m in history if m["role"] == "user"]


@given(HISTORIES)
def test_mending_twice_changes_nothing_more(history: list[Message]) -> None:
    try:
        once = mended(history)
    except HistoryInvalid:
        return
    assert mended(once) == once
