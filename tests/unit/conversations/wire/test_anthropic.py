"""Anthropic's shapes: what a history becomes, and what its blocks become; the SDK's types are the referee."""

import json
from typing import Any

import orjson
import pytest
from anthropic.types import MessageParam, ToolChoiceParam, ToolParam
from pydantic import TypeAdapter

from conversations.errors import MalformedReply
from conversations.messages import Message, assistant, system, tool_call, tool_message, user
from conversations.selection import ToolSelection
from conversations.wire.anthropic import VERBATIM_KEY, Turns, message_of, tool_choice_of, tool_definitions_of
from engines.tool import Tool

TURNS: TypeAdapter[Any] = TypeAdapter(list[MessageParam])
HISTORY: list[Message] = [
    system("You help."),
    user("Compare them."),
    assistant("Looking.", [tool_call("a", "w__get", '{"city":"Oslo"}'), tool_call("b", "w__get", '{"city":"Lima"}')]),
    tool_message("a", '{"t":4}'),
    tool_message("b", "Error: no such city"),
    assistant("Oslo has 4 degrees."),
    user("Thanks."),
]


def turns_of(messages: list[Message], failed: tuple[str, ...] = (), *, mark_cache: bool = False) -> list[Any]:
    turns = Turns()
    turns.take(messages, failed)
    encoded: list[Any] = orjson.loads(turns.encoded(mark_cache=mark_cache))
    TURNS.validate_python(encoded)
    return encoded


def test_e15_calls_become_tool_use_and_their_results_one_user_turn() -> None:
    assert turns_of(HISTORY, ("b",)) == [
        {"role": "user", "content": [{"type": "text", "text": "Compare them."}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "a", "name": "w__get", "input": {"city": "Oslo"}},
                {"type": "tool_use", "id": "b", "name": "w__get", "input": {"city": "Lima"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": '{"t":4}'},
                {"type": "tool_result", "tool_use_id": "b", "content": "Error: no such city", "is_error": True},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Oslo has 4 degrees."}]},
        {"role": "user", "content": [{"type": "text", "text": "Thanks."}]},
    ]


def test_system_messages_stand_apart() -> None:
    turns = Turns()
    turns.take([*HISTORY, {"role": "developer", "content": "Be brief."}], ())
    assert turns.system == ["You help.", "Be brief."]


def test_what_the_user_adds_behind_results_joins_their_turn() -> None:
    last = turns_of([*HISTORY[:5], user("Quick!")])[-1]
    assert [block["type"] for block in last["content"]] == ["tool_result", "tool_result", "text"]


def test_a_history_that_grows_is_translated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from conversations.wire import anthropic

    seen: list[Message] = []
    translate = anthropic._translated

    def noted(message: Message, failed: Any) -> Any:
        seen.append(message)
        return translate(message, failed)

    monkeypatch.setattr(anthropic, "_translated", noted)
    turns = Turns()
    for length in range(1, len(HISTORY) + 1):
        turns.take(HISTORY[:length], ())
    assert seen == HISTORY[1:]
    whole = Turns()
    whole.take(HISTORY, ())
    assert turns.encoded(mark_cache=True) == whole.encoded(mark_cache=True)


def test_a_history_that_was_changed_is_translated_anew() -> None:
    turns = Turns()
    turns.take(HISTORY, ())
    changed = [system("Other."), *HISTORY[1:2]]
    turns.take(changed, ())
    assert (turns.system, orjson.loads(turns.encoded(mark_cache=False))) == (["Other."], turns_of(changed))


def test_the_last_block_ends_what_the_server_may_keep() -> None:
    marked = turns_of(HISTORY, mark_cache=True)
    marks = [block.get("cache_control") for turn in marked for block in turn["content"]]
    assert marks == [None] * (len(marks) - 1) + [{"type": "ephemeral"}]


@pytest.mark.parametrize("text", [None, "", "  \n"])
def test_empty_texts_never_become_blocks(text: str | None) -> None:
    call = tool_call("a", "f", "{}")
    turns = turns_of([user("x"), assistant(text, [call]), tool_message("a", "")])
    assert [block["type"] for block in turns[1]["content"]] == ["tool_use"]
    assert turns[2]["content"][0]["content"] == "(empty result)"


@pytest.mark.parametrize("arguments", ["{", "[1]", "null", ""])
def test_arguments_that_are_no_object_are_sent_as_none(arguments: str) -> None:
    turns = turns_of([user("x"), assistant(None, [tool_call("a", "f", arguments)]), tool_message("a", "1")])
    assert turns[1]["content"][0]["input"] == {}


def test_a_withheld_reply_says_so() -> None:
    turns = turns_of([user("x"), {"role": "assistant", "content": None, "refusal": "I may not."}, user("y")])
    assert turns[1]["content"] == [{"type": "text", "text": "I may not."}]


def test_tools_have_names_and_input_schemas() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    plain = {"type": "function", "function": {"name": "f", "parameters": schema}}
    strict = {"type": "function", "function": {"name": "g", "description": "G.", "parameters": schema, "strict": True}}
    tools = tool_definitions_of([plain, strict])
    assert tools == [
        {"name": "f", "input_schema": schema},
        {"name": "g", "description": "G.", "input_schema": schema, "strict": True},
    ]
    for tool in tools:
        TypeAdapter(ToolParam).validate_python(tool)


def test_u5_choices_in_anthropics_words() -> None:
    function = {"type": "function", "function": {"name": "f"}}
    choices = [tool_choice_of(choice) for choice in ("auto", "none", "required", function)]
    assert choices == [{"type": "auto"}, {"type": "none"}, {"type": "any"}, {"type": "tool", "name": "f"}]
    for choice in choices:
        TypeAdapter(ToolChoiceParam).validate_python(choice)
    assert tool_choice_of(None) is None


def read(content: Any, **more: Any) -> Message:
    return message_of(content, make_call_id=lambda: "made", **more)


def test_blocks_become_a_message() -> None:
    message = read(
        [
            {"type": "text", "text": "Look. "},
            {"type": "tool_use", "id": "a", "name": "w__get", "input": {"city": "Oslo"}},
        ]
    )
    assert message == assistant("Look. ", [tool_call("a", "w__get", '{"city":"Oslo"}')])


def test_thinking_is_kept_for_the_server_and_as_reasoning() -> None:
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "tool_use", "id": "", "name": "w::get", "input": {}},
    ]
    message = read(content)
    assert message["reasoning_content"] == "Hm."
    sent = turns_of([user("x"), message, tool_message("made", "1")])[1]["content"]
    assert sent[0] == content[0]
    assert sent[1] == {"type": "tool_use", "id": "made", "name": "w__get", "input": {}}


def test_thinking_can_be_dropped() -> None:
    content = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "Hi"}]
    assert read(content, keep_reasoning=False) == assistant("Hi")


def test_e15_input_that_is_no_object_is_told_to_the_model() -> None:
    message = read([{"type": "tool_use", "id": "a", "name": "f", "input": '{"city": "Os'}])
    arguments = json.loads(message["tool_calls"][0]["function"]["arguments"])
    assert arguments == {"malformed_arguments": '{"city": "Os'}


BAD: dict[str, Any] = {
    "none": None,
    "text": "hello",
    "a block that is no object": ["x"],
    "nothing": [],
    "text without text": [{"type": "text"}],
    "text that is a number": [{"type": "text", "text": 1}],
    "only white space": [{"type": "text", "text": " \n"}],
    "a call without a name": [{"type": "tool_use", "id": "a", "input": {}}],
    "a call with a number for a name": [{"type": "tool_use", "id": "a", "name": 3, "input": {}}],
    "an unknown block alone": [{"type": "video"}],
    "thought that is no text": [{"type": "thinking", "thinking": {}}],
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_f20_content_that_is_no_message_is_malformed(content: Any) -> None:
    with pytest.raises(MalformedReply):
        read(content)


def test_a_paused_turn_may_be_empty_or_hold_what_only_the_server_knows() -> None:
    blocks = [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}]
    message = read(blocks, may_be_empty=True)
    assert message[VERBATIM_KEY] == blocks
    assert message["content"] == ""


def test_a21_what_only_this_api_knows_of_a_tool_is_passed_through_to_it_alone() -> None:
    passed = {
        "input_examples": [{"city": "Oslo"}],
        "cache_control": {"type": "ephemeral"},
        "defer_loading": True,
    }
    tool = Tool("get", "w", metadata=passed | {"strict": True, "read_only": True, "rest_method": "GET"})
    selection = ToolSelection.of([tool, Tool("plain", "w")])
    assert orjson.loads(selection.extras) == {"w__get": passed}
    assert selection.native[0]["function"].keys() == {"name", "parameters", "strict"}
    first, second = tool_definitions_of(selection.native, orjson.loads(selection.extras))
    assert first == {"name": "w__get", "input_schema": {"type": "object", "properties": {}}, "strict": True} | passed
    assert second.keys() == {"name", "input_schema"}
    TypeAdapter(ToolParam).validate_python(first)
    assert ToolSelection.of([Tool("plain", "w")]).extras == b""


def test_a21_of_overloads_the_first_one_is_heard() -> None:
    first = Tool("get", "w", parameters={"type": "object", "properties": {"a": {}}}, metadata={"defer_loading": True})
    second = Tool("get", "w", metadata={"defer_loading": False})
    assert orjson.loads(ToolSelection.of([first, second]).extras) == {"w__get": {"defer_loading": True}}
