"""A session: its numbers, its copies, and the table of those that are active."""

import asyncio

import pytest

from engines.errors import SessionStateInvalid
from engines.history import History, HistoryEntry
from engines.session import ActiveSessions, Session
from engines.tool import ErrorType, ToolCall, ToolResult


def restored(session_id: str = "s", **state: object) -> Session:
    return Session.restored(session_id, state, auxdata={}, seed=1, history=None, counted={"w"})


def entry(namespace: str = "w", error_type: ErrorType | None = None, **metadata: object) -> HistoryEntry:
    call = ToolCall("a", namespace, {}, "c")
    error = None if error_type is None else "no"
    return HistoryEntry(call, ToolResult("c", call.qualified_name, None, error, error_type, metadata))


def test_d64_a_restored_session_counts_the_calls_that_were_made_here() -> None:
    made = [entry(), entry(error_type=ErrorType.network), entry(error_type=ErrorType.validation, injected="validation")]
    others = [
        entry("other"),
        entry(error_type=ErrorType.validation),
        entry(error_type=ErrorType.permission, denied=True),
    ]
    session = restored(history=[each.to_dict() for each in [*made, *others]])
    assert session.call_count == 3
    assert len(session.history) == 6


def test_a_history_that_is_given_stands_in_place_of_the_states_own() -> None:
    history = History([entry()])
    session = Session.restored("s", {"history": []}, auxdata={}, seed=1, history=history, counted={"w"})
    assert session.history is history
    assert session.call_count == 1


def test_d11_the_scratch_is_a_copy() -> None:
    scratch = {"cart": [1]}
    session = restored(scratch=scratch)
    session.scratch["cart"].append(2)
    assert scratch == {"cart": [1]}


def test_a_state_that_is_none_is_refused() -> None:
    with pytest.raises(SessionStateInvalid, match="a state has a history and a scratch, got histroy"):
        restored(histroy=[])


async def test_every_task_knows_the_number_of_its_own_call() -> None:
    session = restored()
    seen: dict[int, int] = {}

    async def answer(number: int) -> None:
        session.answering(number)
        for _ in range(number + 1):
            await asyncio.sleep(0)
        seen[number] = session.call_number

    await asyncio.gather(*(answer(number) for number in range(5)))
    assert seen == {number: number for number in range(5)}


def test_outside_of_a_call_the_number_is_that_of_the_next() -> None:
    session = restored(history=[entry().to_dict()])
    assert session.call_number == 1


def test_a_rehearsal_shares_what_is_held_and_nothing_that_changes() -> None:
    session = restored(scratch={"count": 1})
    session.resources["connection"] = object()
    rehearsal = session.rehearsal()
    rehearsal.scratch["count"] = 2
    rehearsal.record(entry())
    assert (session.scratch, len(session.history), session.call_count) == ({"count": 1}, 0, 0)
    assert (len(rehearsal.history), rehearsal.call_count) == (1, 1)
    assert rehearsal.resources is session.resources


def test_d7_an_id_is_active_once() -> None:
    sessions = ActiveSessions()
    first, second = restored(), restored()
    sessions.add(first)
    with pytest.raises(ValueError, match="Session 's' is already active"):
        sessions.add(second)
    assert sessions.get("s") is first
    assert len(sessions) == 1


def test_d9_what_is_not_active_is_not_found() -> None:
    sessions = ActiveSessions()
    session = restored()
    assert sessions.find("s") is None
    with pytest.raises(KeyError, match="Session 's' is not active"):
        sessions.get("s")
    with pytest.raises(KeyError, match="not active"):
        sessions.check(session)


def test_d8_a_session_that_ended_does_not_end_the_one_that_took_its_id() -> None:
    sessions = ActiveSessions()
    first, second = restored(), restored()
    sessions.add(first)
    sessions.remove(first)
    sessions.add(second)
    sessions.remove(first)
    sessions.check(second)
    with pytest.raises(KeyError):
        sessions.check(first)
