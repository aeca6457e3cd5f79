"""A run's equipment: its recipe with references resolved, its tools, engines and model, shared by all its jobs."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

import orjson

from conversations.checks.finished import Check
from conversations.checks.kinds import ModelFor, build_checks
from conversations.judge import ModelJudge
from conversations.models.candidates import CandidatesModel, JudgedChoice, first_valid
from conversations.models.kinds import build_model
from conversations.models.model import Model
from conversations.models.settings import ModelChoice, ModelSettings
from conversations.models.speaking import speak_with
from conversations.recipe import CandidateSettings, Recipe
from conversations.recipe_files import recipe_from_json
from conversations.selection import Selector
from conversations.sub_agent import HeldRecipe
from engines.configuration import ToolsConfiguration
from engines.converse import Converse
from engines.engine import ToolEngine
from engines.loading import load_registry
from engines.network.connection import ConnectionSettings
from engines.plain import canonical
from engines.speak import Speak
from engines.wiring import build_engine
from jobs.ledger.shared_cache import LedgerCache, ScopedCache


@dataclass(slots=True)
class Models:
    """The models that a recipe names: its own and those of its lm engines; equal settings share one."""

    models: dict[ModelChoice, Model] = field(default_factory=dict)

    def of(self, settings: ModelChoice) -> Model:
        """Return the model of these settings."""
        if settings not in self.models:
            self.models[settings] = build_model(settings)
        return self.models[settings]

    def speak_for(self, lm_config: dict[str, Any]) -> Speak:
        """Return what an lm engine calls (see :mod:`engines.speak`)."""
        return speak_with(self.of(ModelSettings.from_lm_config(lm_config)))

    async def open(self, stack: AsyncExitStack) -> None:
        """Open them all; the stack closes them."""
        for model in self.models.values():
            await model.open()
            stack.push_async_callback(model.close)


@dataclass(frozen=True, slots=True)
class Equipment:
    """What every job of a run uses."""

    recipe: Recipe
    model: Model
    engine: ToolEngine
    selector: Selector
    user_model: Model | None = None
    checks: Sequence[Check] = ()
    webhook: ConnectionSettings | None = None

    @classmethod
    async def open(
        cls, recipe_json: bytes, *, environment: Mapping[str, str], cache: LedgerCache, stack: AsyncExitStack
    ) -> Self:
        """Resolve the recipe and open what it names. Raises the floors' own errors, each naming place and cause."""
        models = Models()
        equipment = cls.built(recipe_json, models, environment=environment, cache=cache)
        await models.open(stack)
        await equipment.engine.open()
        stack.push_async_callback(equipment.engine.close)
        return equipment

    @classmethod
    def built(cls, recipe_json: bytes, models: Models, *, environment: Mapping[str, str], cache: LedgerCache) -> Self:
        """Make everything and open nothing; the sub-agents behind its tools take their models from these too."""

        def converse_for(pinned: dict[str, Any]) -> Converse:
            own = cls.built(canonical(pinned).encode(), models, environment=environment, cache=cache)
            return HeldRecipe(own.recipe, own.model, own.engine, own.selector, own.checks)

        recipe = recipe_from_json(recipe_json)
        own_model = models.of(recipe.model_settings(environment))
        model_for = partial(_model_for, recipe, models, environment)
        checks = build_checks(recipe.check_settings, model_for)
        model = _with_candidates(own_model, recipe.conversation.candidates, model_for)
        user = recipe.user_model_settings(environment)
        user_model = None if user is None else models.of(user)
        tools = recipe.tools_configuration(environment)
        registry = load_registry(tools, folder=Path(), environment=environment)
        engine = build_engine(
            tools,
            registry,
            speak_for=models.speak_for,
            shared_cache=ScopedCache(cache, _scope_of(tools)),
            converse_for=converse_for,
        )
        selector = Selector(registry, tools.sample, tools.permissions)
        return cls(recipe, model, engine, selector, user_model, checks, recipe.webhook_settings(environment))


def _model_for(recipe: Recipe, models: Models, environment: Mapping[str, str], block: dict[str, Any] | None) -> Model:
    """The model of a judge's block; None: the recipe's own."""
    return models.of(recipe.judge_settings(block, environment))


def _with_candidates(model: Model, settings: CandidateSettings | None, model_for: ModelFor) -> Model:
    """The model as the recipe wants it asked: for one reply a turn, or for several of which one goes on."""
    if settings is None:
        return model
    judge = settings.judge
    choose = first_valid if judge is None else JudgedChoice(ModelJudge(model_for(judge.model), judge.rubric))
    return CandidatesModel(model, settings.n, choose)


def _scope_of(tools: ToolsConfiguration) -> str:
    """Name who may share results: runs whose engines are set up alike, the values of their references included."""
    return hashlib.sha256(orjson.dumps(tools.engines, option=orjson.OPT_SORT_KEYS)).hexdigest()
