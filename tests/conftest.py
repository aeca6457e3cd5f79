"""Fixtures that every test may ask for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.redis_server import redis_server


@pytest.fixture(scope="session")
def checkout() -> Path:
    """Return the folder that holds pyproject.toml."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One real Redis server for the whole session; a test that wipes or stops its server starts its own."""
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server.url
