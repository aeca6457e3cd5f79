"""State is pure JSON, encodes each message once, and comes back from its deltas (rules S18, F38)."""

import json
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.encoding import encode_json
from conversations.errors import CheckpointUnusable
from conversations.messages import Message, assistant, tool_call, tool_message, user
from conversations.selection import ToolSelection
from conversations.state import Mark, State, restored
from engines.tool import Tool
from tests.support.noting_encoder import noting_encoder


def entry(call_id: str, result: object = 1, **metadata: object) -> dict[str, object]:
    return {
        "call_id": call_id,
        "name": "w::add",
        "result": result,
        "error": None,
        "error_type": None,
        "metadata": metadata,
    }


def calling(call_id: str) -> Message:
    return assistant(None, [tool_call(call_id, "w__add", '{"a":1}')])


def grown(turns: int) -> tuple[State, list[bytes]]:
    """A state of some turns, and the deltas that a worker would have kept."""
    state, deltas, mark = State(started_at="2026-01-01T00:00:00Z"), [], Mark()
    state.append(user("hi"))
    for turn in range(turns):
        state.append_reply(calling(f"c{turn}"), finish_reason="tool_calls", input_tokens=3, output_tokens=2)
        deltas.append(state.delta(mark))
        mark = state.mark()
        state.append_results([entry(f"c{turn}", turn)])
        state.append(tool_message(f"c{turn}", str(turn)))
        deltas.append(state.delta(mark))
        mark = state.mark()
    return state, deltas


def test_s18_the_state_is_pure_json_and_resumes_in_another_process() -> None:
    state, _ = grown(2)
    state.finish("error", {"type": "max_turns", "message": "no"})
    code = (
        "import sys; from conversations.state import State;"
        "sys.stdout.buffer.write(State.from_json(sys.stdin.buffer.read()).to_json())"
    )
    other = subprocess.run([sys.executable, "-c", code], input=state.to_json(), capture_output=True, check=True)
    assert State.from_json(other.stdout) == state
    assert json.loads(state.to_json())["body"]["turns"] == 2


def test_deltas_restore_the_state() -> None:
    state, deltas = grown(3)
    assert State.restore(deltas) == state


def test_deltas_restore_on_top_of_a_start() -> None:
    state = State()
    state.append(user("hi"))
    mark, start = state.mark(), State.from_json(state.to_json())
    state.append(assistant("there"))
    assert State.restore([state.delta(mark)], start=start) == state


def test_a_restored_state_goes_on_giving_deltas() -> None:
    _, deltas = grown(2)
    state = State.restore(deltas)
    mark = state.mark()
    state.append(user("more"))
    assert State.restore([*deltas, state.delta(mark)]) == state


def test_a_delta_is_as_long_as_what_was_added_not_as_the_history() -> None:
    _, deltas = grown(60)
    assert len(deltas[-1]) <= len(deltas[3]) + 20
    assert len(deltas[-2]) <= len(deltas[2]) + 20


def test_nothing_new_is_an_empty_delta_and_harmless() -> None:
    state, deltas = grown(1)
    assert state.delta(state.mark()) == b""
    assert State.restore([*deltas, b"", b""]) == state


EDITS: list[Callable[[State], None]] = [
    lambda state: state.insert(1, [user("between")]),
    lambda state: state.remove(2),
    lambda state: state.remove(1, 3),
    lambda state: state.replace([user("anew")]),
    lambda state: state.reopen(),
    lambda state: state.finish("completed"),
]


@pytest.mark.parametrize("edit", EDITS)
def test_a_delta_after_an_edit_restores_the_edited_history(edit: Callable[[State], None]) -> None:
    state, deltas = grown(2)
    mark = state.mark()
    edit(state)
    deltas.append(state.delta(mark))
    mark = state.mark()
    state.append(user("after"))
    deltas.append(state.delta(mark))
    assert State.restore(deltas) == state


@given(st.lists(st.sampled_from(range(len(EDITS) + 3)), max_size=20), st.data())
def test_any_course_of_events_comes_back_from_its_deltas(events: list[int], data: st.DataObject) -> None:
    state, deltas, mark = State(), [], Mark()
    for number, event in enumerate(events):
        if event < len(EDITS):
            EDITS[event](state)
        elif event == len(EDITS):
            state.append_results([entry(f"c{number}")])
        else:
            state.append_reply(calling(f"c{number}"), finish_reason="stop", input_tokens=1, output_tokens=1)
        if data.draw(st.booleans()):
            deltas.append(state.delta(mark))
            mark = state.mark()
    deltas.append(state.delta(mark))
    back = State.restore(deltas)
    assert back == state
    assert back.encoded_messages() == state.encoded_messages() == [encode_json(m) for m in state.messages]


@pytest.mark.parametrize("event", range(len(EDITS)))
def test_every_message_is_encoded_exactly_once(event: int, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = noting_encoder(monkeypatch)
    state, _ = grown(3)
    state.encoded_messages()
    EDITS[event](state)
    state.delta(Mark())
    state.encoded_messages()
    messages = [id(value) for value in encoded if isinstance(value, dict) and "role" in value]
    again = 0 if event != 3 else 1  # a replaced history is new
    assert len(messages) == len(set(messages)) >= 7 + again


def test_f38_a_bad_delta_ends_the_restoring_at_the_good_ones_before_it() -> None:
    _, deltas = grown(3)
    delta = deltas[2]
    for bad in (delta[:-1], b"{}", b"null", delta.replace(b"c1", b"c9"), delta.replace(b'"version":1', b'"version":2')):
        assert bad != delta
        result = restored([*deltas[:2], bad, *deltas[3:]])
        assert result.state == State.restore(deltas[:2])
        assert result.used == 2
        assert result.problem is not None
        assert "left out" in result.problem


def test_f38_no_flipped_byte_goes_unnoticed() -> None:
    _, deltas = grown(1)
    good = State.restore(deltas[:1])
    for index in range(len(deltas[1])):
        flipped = bytearray(deltas[1])
        flipped[index] ^= 0x20
        assert State.restore([deltas[0], bytes(flipped)]) == good


def test_f38_no_truncation_goes_unnoticed() -> None:
    _, deltas = grown(1)
    for length in range(1, len(deltas[0])):
        assert State.restore([deltas[0][:length]]) == State()


def test_f38_deltas_that_are_missing_or_out_of_order_are_noticed() -> None:
    state, deltas = grown(3)
    assert State.restore([deltas[0], *deltas[2:]]) == State.restore(deltas[:1])
    assert State.restore([deltas[1]]) == State()
    assert State.restore([*deltas, deltas[-1]]) == state


def test_f38_a_missing_delta_is_noticed_even_when_it_brought_no_message() -> None:
    state, deltas = grown(1)
    mark = state.mark()
    state.reopen()
    state.delta(mark)
    mark = state.mark()
    state.append(user("more"))
    assert State.restore([*deltas, state.delta(mark)]) == State.restore(deltas)


def test_a_start_that_was_used_before_keeps_nothing_of_what_a_delta_replaced() -> None:
    state = State()
    state.append(user("hi"))
    mark, start = state.mark(), State.from_json(state.to_json())
    start.encoded_messages()
    start.settled = 1
    state.replace([user("anew"), calling("a")])
    back = State.restore([state.delta(mark)], start=start)
    assert (back, back.encoded_messages(), back.settled) == (state, state.encoded_messages(), 0)


def test_f38_an_empty_object_in_place_of_a_delta_loses_what_follows() -> None:
    _, deltas = grown(2)
    assert State.restore([deltas[0], b"", *deltas[2:]]) == State.restore(deltas[:1])


def test_from_json_of_anything_else_is_refused() -> None:
    for data in (b"", b"[]", b"\xff" * 100):
        with pytest.raises(CheckpointUnusable):
            State.from_json(data)


def test_what_json_cannot_hold_does_not_stop_a_checkpoint() -> None:
    state = State()
    state.append(user("half \ud800"))
    state.append_results([entry("a", {"huge": 2**80})])
    state.finish("error", {"type": "x", "message": "\udfff"})
    assert State.restore([state.delta(Mark())]).messages == [user("half ?")]


def test_answers_go_between_those_that_are_there_and_before_what_follows() -> None:
    state = State()
    batch = assistant(None, [tool_call(call_id, "w__add", "{}") for call_id in "abcd"])
    state.append(batch, tool_message("b", "2"), user("x"))
    state.answer(0, {"d": tool_message("d", "4")})
    state.answer(0, {"a": tool_message("a", "1"), "c": tool_message("c", "3")})
    assert [message.get("tool_call_id") for message in state.messages] == [None, "a", "b", "c", "d", None]
    assert state.encoded_messages() == [encode_json(message) for message in state.messages]


def test_the_history_of_the_engine_is_rebuilt_without_calls_that_never_reached_it() -> None:
    names = ToolSelection.of([Tool("add", "w")]).names
    state = State()
    state.append(calling("a"), calling("b"))
    state.append_results([entry("a", 5), entry("b", not_run=True), entry("gone")])
    assert state.history_entries(names) == [
        {
            "call": {"name": "w::add", "arguments": {"a": 1}, "id": "a"},
            "result": {"id": "a", "name": "w::add", "result": 5},
        }
    ]
