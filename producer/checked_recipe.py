"""A recipe with everything it names, checked on this machine before anything is stored or sent."""

import hashlib
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from conversations.errors import HistoryInvalid, RecipeInvalid, TemplateInvalid, ToolChoiceInvalid
from conversations.history import mended
from conversations.messages import JSONObject
from conversations.models.kinds import build_model
from conversations.models.opened import opened_speak
from conversations.models.settings import ModelChoice, ModelSettings, RoutedModels
from conversations.models.speaking import speak_with
from conversations.places import Place
from conversations.recipe_files import LoadedRecipe, find_references, load_recipe, recipe_to_json
from conversations.references import Reference, resolve_references
from conversations.roles import RoleTools
from conversations.selection import Selector
from conversations.templates import render
from engines.configuration import ToolsConfiguration
from engines.errors import ConfigurationInvalid
from engines.loading import load_registry, pinned
from engines.registry import ToolRegistry
from engines.speak import Speak
from engines.wiring import build_engine
from jobs.job import JobLine, seed_of
from jobs.routing import Route, permit_limits, route_of
from producer.sub_recipes import SubRecipes, only_checked
from producer.terminal import say

_UNNAMEABLE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 100
_UNSET = "unset"  # stands for a secret that only the workers know, while engines are built for a check
_UNSET_URL = "http://unset.invalid"  # the same, where only an address will do
_URL_KEYS = frozenset({"url", "base_url"})
ReadFile = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model that a recipe uses, and the key of the recipe that names it."""

    key: str
    settings: ModelSettings

    def __str__(self) -> str:
        where = self.settings.endpoint or "no network"
        return f"{self.key}: {self.settings.model_name} ({self.settings.provider}, {where})"


def named_models(key: str, choice: ModelChoice) -> tuple[NamedModel, ...]:
    """Every model that a role may be played by."""
    if isinstance(choice, RoutedModels):
        routes = enumerate(choice.routes)
        return tuple(each for number, route in routes for each in named_models(f"{key}.routes[{number}]", route))
    fallbacks = (
        each
        for number, settings in enumerate(choice.fallback)
        for each in named_models(f"{key}.fallback[{number}]", settings)
    )
    return (NamedModel(key, choice), *fallbacks)


@dataclass(frozen=True, slots=True)
class CheckedRecipe:
    """A recipe whose tools are loaded and pinned and whose engines can be built; `models` are those that are used."""

    path: Path
    loaded: LoadedRecipe
    registry: ToolRegistry
    stored_form: bytes
    models: tuple[NamedModel, ...]
    selector: Selector = field(repr=False)
    sub_recipes: "tuple[CheckedRecipe, ...]" = ()

    @property
    def name(self) -> str:
        """The recipe's name as a run id may hold it; the file's where it has none."""
        name = _UNNAMEABLE.sub("-", self.loaded.recipe.name or self.path.stem).strip("-.")[:_LONGEST_NAME]
        return name or "run"

    @property
    def digest(self) -> str:
        """What the recipe and its pinned tools are, in hexadecimal digits."""
        return hashlib.sha256(self.stored_form).hexdigest()

    @property
    def models_below(self) -> tuple[NamedModel, ...]:
        """Its models, as the recipe that it is a sub-agent of names them: by its file."""
        return tuple(NamedModel(f"{self.path.name}: {model.key}", model.settings) for model in self.models)

    @property
    def max_attempts(self) -> int:
        """How often a job is started at most."""
        return self.loaded.recipe.limits.max_attempts

    @property
    def permit_limits(self) -> dict[str, int]:
        """How many conversations each stateful namespace bears at once."""
        return permit_limits(self.registry.toolsets)

    @property
    def module_folders(self) -> tuple[Path, ...]:
        """Where modules of local engines are looked for, behind everything that is installed."""
        below = (folder for each in self.sub_recipes for folder in each.module_folders)
        return tuple(dict.fromkeys((*module_folders(self.path), *below)))

    def route_of_job(self, job: JobLine, index: int) -> Route:
        """The stateful namespaces that a job touches; `ConfigurationInvalid` for a tool that is not there."""
        seed = seed_of(job, self.loaded.recipe.seed, index)  # the worker's: a draw must come out the same there
        try:
            user = self.loaded.recipe.conversation.user
            roles = RoleTools.of(self.selector, user, job.tools, job.disabled_tools, seed=seed)
            roles.assistant.choice(job.tool_choice or self.loaded.recipe.conversation.tool_choice)
        except ConfigurationInvalid as error:
            raise ConfigurationInvalid(error.message, at=self._place_in_line(job)) from None
        except ToolChoiceInvalid as error:
            raise ConfigurationInvalid(str(error), at=("tool_choice",)) from None
        self._refuse_missing_beginning(job)
        _refuse_broken_history(job)
        self._refuse_unfilled_templates(job)
        return route_of(roles.tools, self.registry.toolsets)

    def _refuse_missing_beginning(self, job: JobLine) -> None:
        """Somebody must say the first word."""
        user = self.loaded.recipe.conversation.user
        if job.messages is None and job.prompt is None and (user is None or not user.opens):
            raise ConfigurationInvalid('a job needs either "messages" or "prompt"')

    def _refuse_unfilled_templates(self, job: JobLine) -> None:
        """Render what the worker will render: a variable that is missing must not fail a conversation later."""
        conversation = self.loaded.recipe.conversation
        user_texts = conversation.user.texts() if conversation.user is not None else ()
        recipes = [(text, "variables") for text in (conversation.system, *user_texts)]
        for text, at in ((job.prompt, "prompt"), *recipes):
            try:
                render(text or "", job.variables)
            except TemplateInvalid as error:
                raise ConfigurationInvalid(str(error), at=(at,)) from None

    def _place_in_line(self, job: JobLine) -> tuple[str | int, ...]:
        """Where the pattern stands that names no tool."""
        for key, patterns in (("tools", job.tools or ()), ("disabled_tools", job.disabled_tools)):
            for position, pattern in enumerate(patterns):
                try:
                    self.registry.select([pattern])
                except ConfigurationInvalid:
                    return (key, position)
        return ()


def check_recipe(path: Path, *, is_local: bool, above: tuple[Path, ...] = ()) -> CheckedRecipe:
    """Load and check; `is_local` says that workers run here, so that references must be resolvable here.

    `above` are the files of the recipes that this one is a sub-agent of. Raises `RecipeInvalid` with file, line and
    column.
    """
    loaded = load_recipe(path)
    return check_loaded(loaded, path, is_local=is_local, above=above)


def check_loaded(loaded: LoadedRecipe, path: Path, *, is_local: bool, above: tuple[Path, ...] = ()) -> CheckedRecipe:
    """Check a recipe that is read; `path` says beside which file modules of local engines may lie."""
    below = SubRecipes(partial(check_below, is_local=is_local), (*above, path.resolve()))
    for folder in module_folders(path):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    environment, read_file = _surroundings(loaded, is_local=is_local)
    try:
        registry = load_registry(
            loaded.recipe.tools,
            folder=loaded.folder,
            environment=os.environ,
            resolve=_resolved_here,
            open_speak=opened_speak,
            pin_recipe=below.pin,
        )
        tools = loaded.recipe.tools_configuration(environment, read_file)
        listening = _Listening(tools)
        build_engine(tools, registry, speak_for=listening.speak_for, converse_for=only_checked)
    except ConfigurationInvalid as error:
        raise loaded.located(error) from None
    settings = loaded.recipe.model_settings(environment, read_file)
    chosen = named_models("model", settings)
    if (user := loaded.recipe.user_model_settings(environment, read_file)) is not None and user != settings:
        chosen = (*chosen, *named_models("conversation.user.model", user))
    loaded.recipe.webhook_settings(environment, read_file)
    for key, block in loaded.recipe.judge_blocks():
        if block is not None:
            chosen = (*chosen, *named_models(key, loaded.recipe.judge_settings(block, environment, read_file)))
    models = (*chosen, *listening.models, *(model for each in below.checked.values() for model in each.models_below))
    stored_form = recipe_to_json(loaded, pinned(loaded.recipe.tools, registry))
    selector = Selector(registry, loaded.recipe.tools.sample, loaded.recipe.tools.permissions)
    return CheckedRecipe(path, loaded, registry, stored_form, models, selector, tuple(below.checked.values()))


def check_below(path: Path, above: tuple[Path, ...], *, is_local: bool) -> CheckedRecipe:
    """Check a sub-agent's recipe; see `check_recipe`."""
    return check_recipe(path, is_local=is_local, above=above)


def _resolved_here(entry: JSONObject, at: Place) -> JSONObject:
    """A registry entry with its references resolved on this machine, which lists its tools now."""
    try:
        resolved: JSONObject = resolve_references(entry, os.environ, at=("tools", *at))
    except RecipeInvalid as error:
        raise ConfigurationInvalid(f"{error}; it is needed here, where the tools are listed", at=at) from None
    return resolved


def module_folders(recipe: Path) -> tuple[Path, ...]:
    """The working folder and the recipe's."""
    return tuple(dict.fromkeys((Path.cwd(), recipe.absolute().parent)))


def _surroundings(loaded: LoadedRecipe, *, is_local: bool) -> tuple[Mapping[str, str], ReadFile | None]:
    """What references are resolved with: this machine's environment; elsewhere's secrets get stand-ins."""
    unset = [reference for reference in find_references(loaded.recipe) if _is_unset(reference)]
    if is_local and unset:
        first = unset[0]
        message = f"the variable {first.name} is not set"
        hint = f"set {first.name}, or give it a default: ${{{first.name}:-…}}"
        raise loaded.source.invalid(first.at, message, hint=hint)
    if is_local:
        return os.environ, None
    names = sorted({reference.name for reference in unset})
    if names:
        say(f"not set here, so the workers must have them: {', '.join(names)}")
    urls = {reference.name for reference in unset if reference.at and reference.at[-1] in _URL_KEYS}
    stand_ins = {name: _UNSET_URL if name in urls else _UNSET for name in names}
    return {**stand_ins, **os.environ}, lambda _path: _UNSET


def _is_unset(reference: Reference) -> bool:
    return reference.kind == "variable" and reference.default is None and not os.environ.get(reference.name)


class _Listening:
    """Hands models to the engines that are built for the check, and notes which."""

    def __init__(self, tools: ToolsConfiguration) -> None:
        self._tools = tools
        self.models: list[NamedModel] = []

    def speak_for(self, lm_config: dict[str, Any]) -> Speak:
        at = ("engines", self._engine_with(lm_config), "lm_config")
        try:
            settings = ModelSettings.from_lm_config(lm_config)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise ConfigurationInvalid(first["msg"].removeprefix("Value error, "), at=(*at, *first["loc"])) from None
        except ValueError as error:
            raise ConfigurationInvalid(str(error), at=at) from None
        named = named_models(f"tools.{'.'.join(at)}", settings)
        self.models += [each for each in named if each not in self.models]  # an engine may stand in for others too
        return speak_with(build_model(settings))

    def _engine_with(self, lm_config: dict[str, Any]) -> str:
        engines = self._tools.engines
        return next((name for name, engine in engines.items() if engine.get("lm_config") == lm_config), "")


def _refuse_broken_history(job: JobLine) -> None:
    """Messages that no model server would take must not fail a conversation later."""
    try:
        mended([dict(message) for message in job.messages or ()])
    except HistoryInvalid as error:
        raise ConfigurationInvalid(str(error), at=("messages",)) from None
