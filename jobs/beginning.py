"""How a conversation begins: from its job line and its recipe to the state before the first step."""

from conversations.messages import Message, system, user
from conversations.policy.prompts import with_tool_prompts
from conversations.recipe import Recipe
from conversations.selection import ToolSelection
from conversations.state import State
from conversations.templates import render
from jobs.job import JobLine


def beginning(recipe: Recipe, line: JobLine, tools: ToolSelection) -> State:
    """The state that a job starts from; one with `history` goes on from there, its messages as they are."""
    if line.history is None:
        return State(messages=with_tool_prompts(_first_messages(recipe, line), tools.tools))
    return State(
        messages=[dict(message) for message in line.messages or ()],
        tool_results=line.history.entries(),
        turns=line.history.turns,
        tool_calls=line.history.tool_calls,
        finish_reason=line.history.finish_reason,
        user=dict(line.history.user),
    )


def _first_messages(recipe: Recipe, line: JobLine) -> list[Message]:
    messages: list[Message] = []
    given = [dict(message) for message in line.messages or ()]
    instructions = recipe.conversation.system
    if instructions is not None and not (given and given[0]["role"] in {"system", "developer"}):
        messages.append(system(render(instructions, line.variables)))
    messages += given
    if line.prompt is not None:
        messages.append(user(render(line.prompt, line.variables)))
    return messages
