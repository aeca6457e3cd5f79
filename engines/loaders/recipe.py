"""Another recipe as a tool: `{type: recipe, path, name, description, parameters?, prompt?, …}`; pinned whole."""

import json
from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from engines.checked import checked
from engines.errors import ConfigurationInvalid, InvalidTool
from engines.loaders.entries import Entry, Surroundings
from engines.loaders.paths import path_of
from engines.plain import JSONObject
from engines.recipes.sub_agent import SUB_AGENT, SubAgent
from engines.tool import Tool
from engines.tool_settings import ENSEMBLE_DEFAULTS

TASK = "task"
_TASK_ALONE: JSONObject = {
    "type": "object",
    "properties": {TASK: {"type": "string", "description": "What to do, with everything that is needed to do it."}},
    "required": [TASK],
    "additionalProperties": False,
}
_DEFAULT_NAMESPACE = "agents"


class RecipeEntry(Entry):
    """A call's arguments fill in `prompt`, the first message of the other recipe's conversation, and its `system`.

    Without `parameters` there is one argument, `task`, and it is the prompt. With `output_parameters` the result is the
    JSON that the conversation ends with, else it is its last text.
    """

    path: str = Field(min_length=1)
    name: str = Field(min_length=1)
    description: str = Field(min_length=1)
    parameters: JSONObject | None = None
    prompt: str | None = Field(default=None, min_length=1)
    output_parameters: JSONObject | None = None
    timeout_seconds: float = Field(default=600.0, gt=0, allow_inf_nan=False)
    takes_control: bool = False
    keep_messages: bool = False

    @model_validator(mode="after")
    def _says_what_to_do(self) -> Self:
        if self.parameters is not None and self.prompt is None and TASK not in _properties(self.parameters):
            raise ValueError(f"`parameters` without {TASK!r} need a `prompt`, such as 'Write about {{{{ topic }}}}'")
        return self

    def tool(self, recipe: JSONObject) -> Tool:
        """The tool, whose metadata hold the pinned recipe; InvalidTool for what cannot be one."""
        agent = SubAgent(recipe=recipe, prompt=self.first_message, keep_messages=self.keep_messages)
        # A conversation takes longer than a function: the namespace's own defaults stand above this one all the same.
        metadata: JSONObject = {
            SUB_AGENT: agent.model_dump(mode="json"),
            ENSEMBLE_DEFAULTS: {"timeout_seconds": self.timeout_seconds},
        }
        if self.takes_control:
            metadata["takes_control"] = True
        return Tool.from_dict(
            {
                "name": self.name,
                "description": self.description,
                "parameters": _TASK_ALONE if self.parameters is None else self.parameters,
                "output_parameters": self.output_parameters,
                "metadata": metadata,
            },
            namespace=self.namespace or _DEFAULT_NAMESPACE,
        )

    @property
    def first_message(self) -> str:
        """The template of the first message."""
        return f"{{{{ {TASK} }}}}" if self.prompt is None else self.prompt


def load(entry: JSONObject, surroundings: Surroundings) -> list[Tool]:
    """Pin the recipe and make its tool; ConfigurationInvalid stands at the entry's `path`, or at what is wrong."""
    settings = checked(RecipeEntry, entry, at=surroundings.at)
    parameters = _TASK_ALONE if settings.parameters is None else settings.parameters
    try:
        path = path_of(settings.path, surroundings)
    except InvalidTool as error:
        raise ConfigurationInvalid(str(error), at=(*surroundings.at, "path")) from error
    recipe = surroundings.pin_recipe(path, settings.first_message, _example_of(parameters), surroundings.at)
    try:
        return [settings.tool(recipe)]
    except InvalidTool as error:
        raise ConfigurationInvalid(str(error), at=surroundings.at) from error


def _properties(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def _example_of(parameters: JSONObject) -> JSONObject:
    """Stand-ins for the arguments, to try the templates with before any call is made."""
    return {name: json.dumps(name) for name in _properties(parameters)}
