"""What tools want to be said about them (rule U18)."""

from conversations.messages import Message, assistant, system, user
from conversations.policy.prompts import with_tool_prompts
from engines.tool import Tool

QUIET = Tool("quiet", "w")
SEARCH = Tool("search", "w", metadata={"system_prompt": "Search before you answer.", "user_prompt": "Quote sources."})
AGAIN = Tool("again", "w", metadata={"system_prompt": "Search before you answer."})
BLANK = Tool("blank", "w", metadata={"system_prompt": "  ", "user_prompt": 3})


def test_u18_prompts_join_the_system_message_and_the_last_user_message() -> None:
    messages = [system("You help."), user("One."), assistant("Yes?"), user("Two.")]
    assert with_tool_prompts(messages, [QUIET, SEARCH, AGAIN, BLANK]) == [
        system("You help.\n\nSearch before you answer."),
        user("One."),
        assistant("Yes?"),
        user("Two.\n\nQuote sources."),
    ]
    assert messages[0] == system("You help.")


def test_u18_without_a_system_message_there_is_one_now() -> None:
    assert with_tool_prompts([user("Hi")], [AGAIN]) == [system("Search before you answer."), user("Hi")]


def test_u18_a_developer_message_is_one_too() -> None:
    developer: Message = {"role": "developer", "content": "Be brief."}
    assert with_tool_prompts([developer], [AGAIN])[0]["content"] == "Be brief.\n\nSearch before you answer."


def test_u18_tools_that_say_nothing_change_nothing() -> None:
    messages = [user("Hi")]
    assert with_tool_prompts(messages, [QUIET, BLANK]) == messages
    assert with_tool_prompts([], []) == []
