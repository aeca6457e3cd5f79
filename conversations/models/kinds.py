"""Which provider builds which model; every model comes wrapped in retries."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from conversations.models.anthropic import AnthropicModel
from conversations.models.choosing import FallbackModel, WeightedModels
from conversations.models.model import Model
from conversations.models.offline import OfflineModel
from conversations.models.openai_compatible import OpenAICompatibleModel
from conversations.models.openai_sdk import OpenAISDKModel
from conversations.models.retrying import RetryingModel, RetryPolicy
from conversations.models.settings import ModelChoice, ModelSettings, RoutedModels

MODEL_KINDS: Mapping[str, Callable[[ModelSettings], Model]] = MappingProxyType(
    {
        "openai": OpenAICompatibleModel,
        "ollama": OpenAICompatibleModel,
        "openai-sdk": OpenAISDKModel,
        "anthropic": AnthropicModel,
        "offline": OfflineModel,
    }
)


def build_model(choice: ModelChoice) -> Model:
    """The model these settings describe; open it before the first `ask`."""
    if isinstance(choice, RoutedModels):
        return WeightedModels([(build_model(settings), settings.weight) for settings in choice.routes])
    models = [_retrying(settings) for settings in (choice, *choice.fallback)]
    return models[0] if len(models) == 1 else FallbackModel(models)


def _retrying(settings: ModelSettings) -> Model:
    policy = RetryPolicy(max_retries=settings.max_retries, cap_seconds=settings.retry_cap_seconds)
    return RetryingModel(MODEL_KINDS[settings.provider](settings), policy)
