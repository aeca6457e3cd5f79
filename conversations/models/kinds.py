"""Which provider builds which model; every model comes wrapped in retries."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from conversations.models.anthropic import AnthropicModel
from conversations.models.model import Model
from conversations.models.offline import OfflineModel
from conversations.models.openai_compatible import OpenAICompatibleModel
from conversations.models.openai_sdk import OpenAISDKModel
from conversations.models.retrying import RetryingModel, RetryPolicy
from conversations.models.settings import ModelSettings

MODEL_KINDS: Mapping[str, Callable[[ModelSettings], Model]] = MappingProxyType(
    {
        "openai": OpenAICompatibleModel,
        "ollama": OpenAICompatibleModel,
        "openai-sdk": OpenAISDKModel,
        "anthropic": AnthropicModel,
        "offline": OfflineModel,
    }
)


def build_model(settings: ModelSettings) -> Model:
    """The model these settings describe; open it before the first `ask`."""
    policy = RetryPolicy(max_retries=settings.max_retries, cap_seconds=settings.retry_cap_seconds)
    return RetryingModel(MODEL_KINDS[settings.provider](settings), policy)
