"""A model server that is not there is named with its key, its URL and the way out."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest

from conversations.models.settings import ModelSettings
from producer.checked_recipe import CheckedRecipe, NamedModel
from producer.errors import DependencyUnreachable
from producer.model_endpoints import refuse_unreachable_models


@dataclass(frozen=True)
class WithModels:
    """As much of a checked recipe as is looked at."""

    models: tuple[NamedModel, ...]


def recipe(*settings: dict[str, Any]) -> CheckedRecipe:
    models = (NamedModel(f"key{number}", ModelSettings.model_validate(each)) for number, each in enumerate(settings))
    return cast("CheckedRecipe", WithModels(tuple(models)))


def openai(port: int, **more: Any) -> dict[str, Any]:
    return {"provider": "openai", "model": "m", "base_url": f"http://127.0.0.1:{port}/v1", **more}


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def port_of(listening: socket.socket) -> int:
    return int(listening.getsockname()[1])


def test_a_server_that_listens_is_enough_and_is_asked_once(listener: socket.socket) -> None:
    refuse_unreachable_models(recipe(openai(port_of(listener)), openai(port_of(listener), temperature=1)))
    listener.settimeout(10)
    listener.accept()[0].close()
    listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_a_server_that_is_not_there_is_named_with_its_key(listener: socket.socket) -> None:
    port = port_of(listener)
    listener.close()
    with pytest.raises(DependencyUnreachable, match=rf"key1: the model server http://127.0.0.1:{port}/v1 .*mock-model"):
        refuse_unreachable_models(recipe({"provider": "offline"}, openai(port)))


def test_a_host_that_has_no_address_is_named() -> None:
    settings = openai(1) | {"base_url": "http://nowhere.invalid:1/v1"}
    with pytest.raises(DependencyUnreachable, match=r"nowhere\.invalid:1/v1 is unreachable"):
        refuse_unreachable_models(recipe(settings))


def test_what_only_a_proxy_reaches_is_not_asked_directly() -> None:
    refuse_unreachable_models(recipe(openai(9, environment_proxy=True)))
