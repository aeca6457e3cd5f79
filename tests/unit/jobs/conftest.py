"""A ledger on every Redis server of this machine."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from jobs.ledger import Ledger
from jobs.ledger.runs import RunFacts
from tests.support.redis_server import RedisServer, redis_server, servers

RUN = "weather-1a2b3c4d"


@pytest.fixture(scope="session", params=sorted(servers()))
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    folder: Path = tmp_path_factory.mktemp("redis")
    with redis_server(folder, servers()[request.param]) as running:
        yield running


@pytest.fixture
async def ledger(server: RedisServer) -> AsyncIterator[Ledger]:
    with server.client() as client:
        client.flushall()
    async with Ledger.open(server.url, message_grace_seconds=0.0) as opened:
        yield opened


@pytest.fixture
async def fed(ledger: Ledger) -> Ledger:
    """A ledger with one run: jobs 0-9 stateless, 10-19 on a namespace with two permits, all fed."""
    await ledger.runs.register(facts())
    await ledger.permits.set_limits({"hr_api": 2})
    assert await ledger.feeding.take_lease(RUN, "feeder")
    assert await ledger.feeding.feed(RUN, "feeder", [(index, 0 if index < 10 else 1) for index in range(20)])
    return ledger


def facts(run_id: str = RUN, *, jobs: int = 20, digest: str = "digest", max_attempts: int = 3) -> RunFacts:
    return RunFacts(
        run_id=run_id,
        results="file:///results",
        jobs=jobs,
        digest=digest,
        routes=((), ("hr_api",)),
        limits={"hr_api": 2},
        max_attempts=max_attempts,
    )
