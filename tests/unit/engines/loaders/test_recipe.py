"""The entry of a recipe that is a tool."""

from pathlib import Path
from typing import Any

import pytest

from engines.errors import ConfigurationInvalid, Place
from engines.loaders.entries import Surroundings
from engines.loaders.recipe import load
from engines.plain import JSONObject
from engines.recipes.sub_agent import SUB_AGENT
from engines.tool import Tool

AT: Place = ("registry", 0)
ENTRY = {"type": "recipe", "path": "x.yaml", "name": "research", "description": "Finds out."}
PINNED = {"format": 1, "recipe": {"model": {}}}


def loaded(**more: Any) -> tuple[Tool, list[tuple[Path, str, JSONObject]]]:
    asked: list[tuple[Path, str, JSONObject]] = []

    def pin(path: Path, prompt: str, arguments: JSONObject, at: Place) -> JSONObject:
        asked.append((path, prompt, arguments))
        return PINNED

    (tool,) = load({**ENTRY, **more}, Surroundings(AT, Path("/recipes"), {}, pin_recipe=pin))
    return tool, asked


def test_an_entry_is_one_tool_with_a_task_that_is_the_prompt() -> None:
    tool, asked = loaded()
    assert tool.qualified_name == "agents::research"
    assert tool.parameters["required"] == ["task"]
    assert tool.metadata[SUB_AGENT] == {"recipe": PINNED, "prompt": "{{ task }}", "keep_messages": False}
    ((path, prompt, arguments),) = asked
    assert (path, prompt, list(arguments)) == (Path("/recipes/x.yaml"), "{{ task }}", ["task"])


def test_own_parameters_fill_in_an_own_prompt() -> None:
    parameters = {"type": "object", "properties": {"topic": {"type": "string"}}}
    tool, asked = loaded(parameters=parameters, prompt="About {{ topic }}", namespace="desk")
    assert (tool.qualified_name, tool.parameters) == ("desk::research", parameters)
    assert asked[0][1:] == ("About {{ topic }}", {"topic": '"topic"'})


def test_u12_an_entry_may_hand_the_conversation_over() -> None:
    assert loaded(takes_control=True)[0].metadata["takes_control"] is True
    assert "takes_control" not in loaded()[0].metadata


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"parameters": {"type": "object", "properties": {"topic": {}}}},
            "`parameters` without 'task' need a `prompt`",
        ),
        ({"promt": "x"}, "unknown key 'promt'; did you mean 'prompt'"),
        ({"description": ""}, "at least 1 character"),
        ({"parameters": {"type": "array"}, "prompt": "x"}, "parameters must be of type object"),
        ({"path": "${NOWHERE}/x.yaml"}, "the variable NOWHERE is not set"),
    ],
)
def test_a_wrong_entry_is_told(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=r"registry\[0\]") as caught:
        loaded(**more)
    assert said in str(caught.value)


def test_who_cannot_read_recipes_says_so() -> None:
    with pytest.raises(ConfigurationInvalid, match=r"registry\[0\]\.path: the recipe /x\.yaml cannot be read here"):
        load(ENTRY, Surroundings(AT, Path("/"), {}))
