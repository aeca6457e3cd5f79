"""Decision 3, without a loop: what becomes of the message that a caller looks at."""

from conversations.edits import appended, replaced
from conversations.messages import Message, assistant, tool_call, tool_message, user

HI = user("hi")
TEXT = assistant("text")


def calling(*call_ids: str) -> Message:
    return assistant(None, [tool_call(call_id, "w__add", "{}") for call_id in call_ids])


def test_a2_a_text_goes_when_something_is_appended() -> None:
    assert appended([HI, TEXT], TEXT, [user("x")]) == [HI, user("x")]


def test_a2_only_the_message_itself_goes_not_one_that_is_equal() -> None:
    equal = assistant("text")
    assert appended([HI, equal, TEXT], TEXT, [user("x")]) == [HI, equal, user("x")]


def test_a5_calls_stay_before_what_is_appended() -> None:
    held = calling("a")
    assert appended([HI, held], held, [user("x")]) == [HI, held, user("x")]


def test_a_copy_among_the_additions_takes_the_messages_place() -> None:
    held, copy = calling("a", "b"), calling("a")
    assert appended([HI, held], held, [user("x"), copy]) == [HI, user("x"), copy]


def test_without_a_held_message_appending_is_appending() -> None:
    assert appended([HI, TEXT], None, [user("x")]) == [HI, TEXT, user("x")]


def test_calls_left_out_go_in_before_what_was_added() -> None:
    held = calling("a")
    assert replaced([HI, held], held, [HI, user("x")]) == [HI, held, user("x")]


def test_calls_left_out_of_a_rewritten_history_go_to_its_end() -> None:
    held = calling("a")
    assert replaced([HI, held], held, [user("in short"), user("x")]) == [user("in short"), user("x"), held]


def test_calls_left_out_go_in_before_their_own_answers() -> None:
    held = calling("a")
    changed = [user("in short"), tool_message("a", "r"), user("x")]
    assert replaced([HI, held], held, changed) == [user("in short"), held, tool_message("a", "r"), user("x")]


def test_a_text_left_out_stays_out() -> None:
    assert replaced([HI, TEXT], TEXT, [HI]) == [HI]
