"""A run's equipment: its recipe with references resolved, its tools, engines and model, shared by all its jobs."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from conversations.models.kinds import build_model
from conversations.models.model import Model
from conversations.models.settings import ModelChoice, ModelSettings
from conversations.models.speaking import speak_with
from conversations.recipe import Recipe
from conversations.recipe_files import recipe_from_json
from conversations.selection import Selector
from engines.engine import ToolEngine
from engines.loading import load_registry
from engines.speak import Speak
from engines.wiring import build_engine


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

    @classmethod
    async def open(cls, recipe_json: bytes, *, environment: Mapping[str, str], stack: AsyncExitStack) -> Self:
        """Resolve the recipe and open what it names. Raises the floors' own errors, each naming place and cause."""
        recipe = recipe_from_json(recipe_json)
        models = Models()
        model = models.of(recipe.model_settings(environment))
        tools = recipe.tools_configuration(environment)
        registry = load_registry(tools, folder=Path(), environment=environment)
        engine = build_engine(tools, registry, speak_for=models.speak_for)
        await models.open(stack)
        await engine.open()
        stack.push_async_callback(engine.close)
        return cls(recipe, model, engine, Selector(registry, tools.sample))
