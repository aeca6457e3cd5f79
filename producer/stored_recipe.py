"""The recipe of a run that is there, checked for another run; its model may be exchanged."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from conversations.errors import RecipeInvalid
from conversations.places import Place, written
from conversations.recipe import Recipe
from conversations.recipe_files import STORED_FORMAT, LoadedRecipe, recipe_from_json
from conversations.recipe_source import Position, RecipeSource
from conversations.recipe_toml import read_toml
from conversations.recipe_yaml import read_yaml
from conversations.references import BROKEN, SPELLING, broken_references_in
from engines.plain import canonical
from jobs.run import read_recipe
from producer.checked_recipe import CheckedRecipe, check_loaded
from producer.errors import InputInvalid, UsageInvalid
from producer.run_address import FoundRun

JSONObject = dict[str, Any]
_READERS = {".yaml": read_yaml, ".yml": read_yaml, ".json": read_yaml, ".toml": read_toml}


def check_stored_recipe(found: FoundRun, *, model: str | None, folder: Path, is_local: bool) -> CheckedRecipe:
    """Check the recipe that a run has stored, with another `model` (a name, or a file with a model block) if given.

    Modules of local engines are looked for in `folder`: a run does not store where its recipe lay.
    """
    stored_form = read_recipe(found.store, found.manifest)
    recipe_from_json(stored_form)  # says so when it is of another version
    stored: JSONObject = orjson.loads(stored_form)["recipe"]
    if model is not None:
        stored = {**stored, "model": _model_block(model, stored["model"])}
        stored_form = canonical({"format": STORED_FORMAT, "recipe": stored}).encode()
    file = f"{found.run_id}/recipe.json"
    try:
        recipe = Recipe.model_validate(stored)
    except ValidationError as error:
        line = error.errors(include_url=False, include_input=False)[0]
        raise UsageInvalid(f"--model {model}: {written(line['loc'])}: {line['msg']}") from None
    nowhere: dict[Place, Position] = {(): Position(0, 0)}  # nobody wrote this file, so its lines say nothing
    source = RecipeSource(file, stored, nowhere, nowhere)
    loaded = LoadedRecipe(recipe, source, folder, stored_form.decode())
    checked = check_loaded(loaded, folder / "recipe.json", is_local=is_local)
    return replace(checked, stored_form=stored_form)  # pinned already: the same run gives the same bytes


def _model_block(model: str, present: JSONObject) -> JSONObject:
    """The block that `--model` means."""
    path = Path(model)
    if path.suffix.lower() in _READERS:
        return _block_in(path)
    if "routes" in present:
        raise UsageInvalid(
            f"--model {model}: the recipe's model is one of several routes; name a file with a model block"
        )
    return {**present, "model": model}


def _block_in(path: Path) -> JSONObject:
    """A model block: the whole of the file, or what it has under `model`, as a recipe does."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InputInvalid(f"--model {path}: cannot be read: {cause}") from None
    source = _READERS[path.suffix.lower()](text, str(path))
    inner = source.data.get("model")
    place = ("model",) if isinstance(inner, dict) else ()
    block: JSONObject = inner if isinstance(inner, dict) else source.data
    broken = [(*place, *each) for each in broken_references_in(block)]
    if broken:
        raise source.invalid(broken[0], BROKEN, hint=SPELLING)
    if not block:
        raise RecipeInvalid("holds no model block", file=str(path))
    return block
