"""What k8s/redis.acl grants each role is what it needs to pause, to answer and to be told, and no more."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.exceptions import NoPermissionError

from jobs.job import JobReference
from jobs.ledger import Ledger
from jobs.ledger.claims import Granted, Usage
from jobs.ledger.externals import FINISHED, channel_of
from tests.support.redis_server import RedisServer
from tests.unit.jobs.conftest import RUN, facts


@pytest.fixture
def roles(server: RedisServer, checkout: Path) -> Iterator[RedisServer]:
    """The server with the users of a cluster, each with its name for a password."""
    users = [line.split()[1:] for line in (checkout / "k8s" / "redis.acl").read_text().splitlines()]
    with server.client() as client:
        client.flushall()
        for name, *rules in users:
            if name != "default":
                client.execute_command("ACL", "SETUSER", name, "reset", *rules, f">{name}")
        try:
            yield server
        finally:
            for name, *_ in users:
                if name != "default":
                    client.execute_command("ACL", "DELUSER", name)


def url_of(server: RedisServer, role: str) -> str:
    return f"redis://{role}:{role}@127.0.0.1:{server.port}/0"


async def test_sec_s14_workers_pause_and_feeders_answer_with_the_rights_that_they_have(roles: RedisServer) -> None:
    async with Ledger.open(url_of(roles, "worker")) as worker, Ledger.open(url_of(roles, "feeder")) as feeder:
        await feeder.runs.register(facts(jobs=2))
        assert await feeder.feeding.take_lease(RUN, "feeder")
        await feeder.feeding.feed(RUN, "feeder", [(0, 0)])
        async with feeder.externals.listening(RUN) as listening:
            outcome = await worker.claims.claim(JobReference(RUN, 0), "worker-0")
            assert isinstance(outcome, Granted)
            assert await worker.externals.pause(outcome.claim, "state", [("a", 60)])
            assert await listening.next(10) == "0"
            assert await feeder.externals.paused(RUN) == [0]
            assert await feeder.externals.awaited(JobReference(RUN, 0)) is not None
            assert (await feeder.sweeping.sweep(RUN, "feeder")).is_ours
            assert (await feeder.externals.answer(RUN, 0, "key", ["a"])).job == "resumed"
            assert await feeder.externals.restore(RUN, 1, 0, "state", [("b", "key", None)])
            for index in range(2):
                outcome = await worker.claims.claim(JobReference(RUN, index), f"worker-{index + 1}")
                assert isinstance(outcome, Granted)
                assert await worker.claims.settle(outcome.claim, "ok", Usage())
            assert await listening.next(10) == FINISHED
        assert (await worker.sweeping.sweep(RUN, "worker")).expired == 0


def test_sec_s13_nobody_else_is_told_and_a_feeder_tells_nobody(roles: RedisServer) -> None:
    with redis.Redis.from_url(url_of(roles, "feeder")) as feeder, pytest.raises(NoPermissionError):
        feeder.publish(channel_of(RUN), "0")
    with redis.Redis.from_url(url_of(roles, "flower")) as flower:
        listening = flower.pubsub()
        listening.subscribe(channel_of(RUN))
        with pytest.raises(NoPermissionError):
            listening.get_message(timeout=5)
        listening.close()
