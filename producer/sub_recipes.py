"""Recipes that a recipe names as tools: found, checked like any other, and pinned whole into what the run stores."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from conversations.errors import RecipeInvalid, TemplateInvalid
from conversations.messages import JSONObject
from conversations.recipe import Recipe
from conversations.templates import render
from engines.converse import Brief, Converse, Conversed
from engines.errors import ConfigurationInvalid, Place
from engines.registry import ToolRegistry
from engines.tool_settings import CONFIRM, EXTERNAL, is_on
from engines.toolset import EXTERNAL_ENGINE

if TYPE_CHECKING:
    from producer.checked_recipe import CheckedRecipe

MOST_DEPTH = 3


@dataclass(slots=True)
class SubRecipes:
    """The recipes behind the tools of one recipe; `above` leads down to that one's file, itself the last.

    `check` checks another file, told what is above it; `checked` holds what it found, by path.
    """

    check: "Callable[[Path, tuple[Path, ...]], CheckedRecipe]"
    above: tuple[Path, ...]
    checked: "dict[Path, CheckedRecipe]" = field(default_factory=dict)

    def pin(self, path: Path, prompt: str, arguments: JSONObject, at: Place) -> JSONObject:
        """The stored form of the recipe at `path`; see :data:`engines.loaders.entries.PinRecipe`."""
        file = path.resolve()
        self._refuse_endless(file, (*at, "path"))
        if file not in self.checked:
            try:
                self.checked[file] = self.check(path, self.above)
            except RecipeInvalid as error:
                raise ConfigurationInvalid(f"the recipe behind this tool: {error}", at=(*at, "path")) from None
        checked = self.checked[file]
        recipe = checked.loaded.recipe
        if problem := _cannot_be_called(recipe, checked.registry):
            raise ConfigurationInvalid(f"{path}: {problem}", at=(*at, "path"))
        for text, place in ((prompt, (*at, "prompt")), (recipe.conversation.system or "", (*at, "path"))):
            try:
                render(text, arguments)
            except TemplateInvalid as error:
                known = ", ".join(arguments) or "none"
                raise ConfigurationInvalid(f"{error}, and here the call's arguments do: {known}", at=place) from None
        pinned: JSONObject = json.loads(checked.stored_form)
        return pinned

    def _refuse_endless(self, file: Path, at: Place) -> None:
        if file in self.above:
            circle = " → ".join(each.name for each in (*self.above[self.above.index(file) :], file))
            raise ConfigurationInvalid(f"recipes call one another in a circle: {circle}; break it", at=at)
        if len(self.above) > MOST_DEPTH:
            chain = " → ".join(each.name for each in (*self.above, file))
            message = f"sub-agents lie at most {MOST_DEPTH} deep, and this is {len(self.above)}: {chain}"
            raise ConfigurationInvalid(f"{message}; put some of them side by side", at=at)


def only_checked(_recipe: JSONObject) -> Converse:
    """What stands in engines that are built for a check alone: the recipe was checked when it was pinned."""
    return _Unheld()


class _Unheld:
    async def open(self) -> None:
        """Nothing is held here."""

    async def close(self) -> None:
        """Nothing is held here."""

    async def __call__(self, brief: Brief) -> Conversed:
        raise NotImplementedError("engines that are built for a check are not asked")


def _cannot_be_called(recipe: Recipe, registry: ToolRegistry) -> str:
    """Why no call can be answered by a conversation of this recipe; "" when it can."""
    if recipe.conversation.user is not None:
        return "a sub-agent's user is the one who calls it; leave `conversation.user` out"
    waiting = [
        tool.qualified_name
        for toolset in registry.toolsets.values()
        for tool in toolset.tools
        if toolset.engine == EXTERNAL_ENGINE or is_on(tool, EXTERNAL) or is_on(tool, CONFIRM)
    ]
    if waiting or recipe.tools.permissions.confirm:
        named = f" ({', '.join(sorted(waiting))})" if waiting else ""
        return f"a sub-agent cannot wait for somebody outside; leave out its external and confirmed tools{named}"
    return ""
