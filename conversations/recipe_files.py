"""Recipes as files and as what a run stores: reading with places in every error, the stored form, and back."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from conversations.errors import RecipeInvalid
from conversations.messages import JSONObject
from conversations.models.settings import ModelSettings, WeightedModel
from conversations.places import Place, followed
from conversations.recipe import Recipe, blocks_with_references, find_references
from conversations.recipe_source import RecipeSource
from conversations.recipe_toml import read_toml
from conversations.recipe_yaml import read_yaml
from conversations.references import BROKEN, SPELLING, broken_references_in, resolve_references
from conversations.user_settings import UserSettings
from engines.errors import ConfigurationInvalid
from engines.nearest import hint
from engines.plain import canonical

__all__ = ["LoadedRecipe", "find_references", "load_recipe", "recipe_from_json", "recipe_to_json", "resolve_references"]

MOST_BYTES = 1 << 20
STORED_FORMAT = 1
_ERRORS_SHOWN = 20
_READERS = {".yaml": read_yaml, ".yml": read_yaml, ".toml": read_toml}


@dataclass(frozen=True, slots=True)
class LoadedRecipe:
    """A recipe, the file it was read from, and where in the file everything stands."""

    recipe: Recipe
    source: RecipeSource
    folder: Path
    text: str

    def located(self, error: ConfigurationInvalid) -> RecipeInvalid:
        """An error of the tools block with its file, line and column."""
        return self.source.invalid(_inside(self.source.data, ("tools", *error.at)), error.message)


def load_recipe(path: Path) -> LoadedRecipe:
    """Read and check a YAML or TOML recipe; RecipeInvalid says `file:line:column: key.path: what; the way out`."""
    file = str(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise RecipeInvalid(f"a recipe's name ends in {', '.join(_READERS)}", file=file)
    text = _text_of(path)
    source = reader(text, file)
    return LoadedRecipe(_checked(source), source, path.parent, text)


def recipe_to_json(loaded: LoadedRecipe, pinned_tools: JSONObject) -> bytes:
    """What a run stores: the recipe with its tools written out, its references unresolved; equal for equal recipes."""
    stored = loaded.recipe.model_dump(mode="json") | {"tools": pinned_tools}
    return canonical({"format": STORED_FORMAT, "recipe": stored}).encode()


def recipe_from_json(data: bytes) -> Recipe:
    """The recipe that `recipe_to_json` stored."""
    try:
        stored = json.loads(data)
        if not isinstance(stored, dict) or stored.get("format") != STORED_FORMAT:
            raise RecipeInvalid(f"the stored recipe is not of format {STORED_FORMAT}; submit the run again")
        return Recipe.model_validate(stored.get("recipe"))
    except ValidationError as error:
        line = error.errors(include_url=False, include_input=False)[0]
        raise RecipeInvalid(f"the stored recipe is damaged: {line['msg']} at {line['loc']}") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RecipeInvalid(f"the stored recipe is damaged: {error}") from None


def _text_of(path: Path) -> str:
    file = str(path)
    try:
        with path.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise RecipeInvalid(f"cannot be read: {error.strerror or error}", file=file) from None
    if len(content) > MOST_BYTES:
        raise RecipeInvalid(f"longer than {MOST_BYTES >> 20} MB", file=file, hint="keep tools in files of their own")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - (content.rfind(b"\n", 0, error.start) + 1) + 1
        raise RecipeInvalid("not UTF-8 text", file=file, line=line, column=column) from None


def _checked(source: RecipeSource) -> Recipe:
    try:
        recipe = Recipe.model_validate(source.data)
    except ValidationError as error:
        raise _first_of(list(_explained(source, error))) from None
    blocks = blocks_with_references(source.data)
    if broken := [source.invalid(place, BROKEN, hint=SPELLING) for place in broken_references_in(blocks)]:
        raise _first_of(broken)
    return recipe


def _first_of(errors: list[RecipeInvalid]) -> RecipeInvalid:
    """The first error in the order of the file, with the others behind it."""
    errors.sort(key=lambda error: (error.line, error.column))
    first, others = errors[0], errors[1:_ERRORS_SHOWN]
    first.others = tuple(others)
    return first


def _explained(source: RecipeSource, error: ValidationError) -> Iterator[RecipeInvalid]:
    for line in error.errors(include_url=False):
        place = line["loc"]
        if line["type"] == "extra_forbidden":
            known = _known_keys(place[:-1])
            yield source.invalid(place, "unknown key", hint=hint(str(place[-1]), known), of_key=True)
        elif line["type"] == "missing":
            yield source.invalid(place, "is missing")
        else:
            yield source.invalid(_inside(source.data, place), _message(line))


def _message(line: ErrorDetails) -> str:
    cause = line.get("ctx", {}).get("error")
    if isinstance(cause, ConfigurationInvalid):
        return cause.message
    return line["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")


def _inside(data: Any, place: Place) -> Place:
    """The part of an error's path that leads through the file: pydantic adds names of union members."""
    if place[:2] == ("tools", "registry") and isinstance(data.get("tools"), list):
        place = ("tools", *place[2:])  # a list stands for its registry
    depth, _ = followed(data, place)
    return place[:depth]


def _known_keys(place: Place) -> list[str]:
    """The keys of the block at this path, found in the models that check it."""
    model: type[BaseModel] | None = Recipe
    for step in place:
        if model in {Recipe, UserSettings} and step == "model":
            model = ModelSettings
        elif model is ModelSettings and step == "routes":
            model = WeightedModel
        elif isinstance(step, int):
            continue
        elif model is not None and step in model.model_fields:
            model = _model_in(model.model_fields[str(step)].annotation)
    return [] if model is None else list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The pydantic model inside an annotation such as `dict[str, Settings]` or `Settings | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part)) is not None), None)
