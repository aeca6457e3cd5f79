"""Messages are plain objects in OpenAI's chat shape."""

from conversations.messages import assistant, call_ids_of, system, text_of, tool_call, tool_calls_of, tool_message, user


def test_an_assistant_message_without_calls_has_no_tool_calls_key() -> None:
    assert assistant("hi") == {"role": "assistant", "content": "hi"}


def test_a_call_only_message_has_null_content() -> None:
    call = tool_call("c1", "w__add", "{}")
    assert assistant(tool_calls=[call]) == {"role": "assistant", "content": None, "tool_calls": [call]}


def test_only_assistant_messages_have_calls() -> None:
    assert tool_calls_of({"role": "user", "content": "x", "tool_calls": [1]}) == []
    assert tool_calls_of({"role": "assistant", "content": "x", "tool_calls": None}) == []


def test_call_ids_come_in_call_order() -> None:
    assert call_ids_of(assistant(None, [tool_call("b", "x", "{}"), tool_call("a", "x", "{}")])) == ["b", "a"]


def test_the_text_of_a_message_joins_text_parts_and_skips_the_rest() -> None:
    assert text_of(user("a")) == "a"
    assert text_of({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}, "x"]}) == "a"
    assert text_of(assistant()) == ""


def test_the_other_roles() -> None:
    assert system("s") == {"role": "system", "content": "s"}
    assert tool_message("c", "r") == {"role": "tool", "tool_call_id": "c", "content": "r"}
