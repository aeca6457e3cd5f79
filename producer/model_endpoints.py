"""Whether the servers of a recipe's models are there, asked before the first conversation."""

import socket
from urllib.parse import urlsplit

from producer.checked_recipe import CheckedRecipe, NamedModel
from producer.errors import DependencyUnreachable

_CONNECT_SECONDS = 5.0
_PORTS = {"http": 80, "https": 443}


def refuse_unreachable_models(checked: CheckedRecipe) -> None:
    """Connect to each model's server once; `DependencyUnreachable` names the URL, the cause and the way out."""
    seen: set[str] = set()
    for model in checked.models:
        endpoint = model.settings.endpoint
        if endpoint and endpoint not in seen and not model.settings.environment_proxy:
            seen.add(endpoint)
            _refuse_unreachable(model, endpoint)


def _refuse_unreachable(model: NamedModel, endpoint: str) -> None:
    parts = urlsplit(endpoint)
    address = (parts.hostname or "", parts.port or _PORTS[parts.scheme])
    try:
        socket.create_connection(address, timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        raise DependencyUnreachable(
            f"{model.key}: the model server {endpoint} is unreachable: {error.strerror or error}; start it, or correct "
            f"`base_url` in the recipe. To try the recipe without a model: parley mock-model --port {address[1]}"
        ) from None
