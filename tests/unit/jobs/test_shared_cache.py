"""The cache of all workers: bounded, and a miss whenever Redis cannot be asked."""

import asyncio
import signal
from typing import Any

from jobs.ledger import Ledger
from jobs.ledger.shared_cache import LedgerCache, ScopedCache
from tests.support.redis_server import RedisServer, free_port


async def bytes_kept(ledger: Ledger) -> int:
    return int(await ledger.scripts.redis.get("parley:cache:bytes") or 0)


async def test_a_result_is_there_for_every_worker_until_its_time_is_over(ledger: Ledger) -> None:
    await ledger.cache.put("key", b"value", ttl_seconds=60)
    async with Ledger.open(ledger.url) as another:
        assert await another.cache.get("key") == b"value"
        assert (another.cache.hits, another.cache.misses) == (1, 0)
    assert await ledger.cache.get("another key") is None
    await ledger.cache.put("short", b"value", ttl_seconds=0.001)
    await asyncio.sleep(0.002)  # Redis's clock: one millisecond has to pass
    assert await ledger.cache.get("short") is None


async def test_keys_stay_below_the_prefix_that_the_acl_grants(ledger: Ledger) -> None:
    await ledger.cache.put("a key with\nanything ☃ in it" * 100, b"value", ttl_seconds=60)
    names: list[Any] = await ledger.scripts.redis.keys("*")
    assert all(name.startswith(b"parley:") for name in names)


async def test_a_value_that_is_too_large_is_not_kept(ledger: Ledger) -> None:
    await ledger.cache.put("key", b"x" * (ledger.cache.most_value_bytes + 1), ttl_seconds=60)
    assert await ledger.cache.get("key") is None
    assert await bytes_kept(ledger) == 0


async def test_f10_all_values_together_stay_within_their_bound_and_those_that_expire_first_make_room(
    ledger: Ledger,
) -> None:
    cache = LedgerCache(ledger.scripts, most_bytes=1000)
    for number in range(20):
        await cache.put(f"key {number}", b"x" * 100, ttl_seconds=1000 + number)
    assert await bytes_kept(ledger) == 1000
    assert [await cache.get(f"key {number}") is not None for number in range(20)] == [False] * 10 + [True] * 10


async def test_a_value_that_is_replaced_is_not_counted_twice(ledger: Ledger) -> None:
    for value in (b"x" * 100, b"y" * 50, b"z" * 50):
        await ledger.cache.put("key", value, ttl_seconds=60)
        assert await ledger.cache.get("key") == value
        assert await bytes_kept(ledger) == len(value)


async def test_values_that_expired_are_counted_out(ledger: Ledger) -> None:
    await ledger.cache.put("short", b"x" * 100, ttl_seconds=0.001)
    await asyncio.sleep(0.002)
    await ledger.cache.put("key", b"x" * 10, ttl_seconds=60)
    assert await bytes_kept(ledger) == 10
    await ledger.cache.put("again", b"x" * 10, ttl_seconds=0.001)
    await asyncio.sleep(0.002)
    await ledger.cache.put("again", b"x" * 10, ttl_seconds=60)
    assert await bytes_kept(ledger) == 20


async def test_those_of_another_scope_see_nothing(ledger: Ledger) -> None:
    mine, theirs = ScopedCache(ledger.cache, "mine"), ScopedCache(ledger.cache, "theirs")
    await mine.put("key", b"value", ttl_seconds=60)
    assert (await mine.get("key"), await theirs.get("key")) == (b"value", None)


async def test_f8_without_redis_everything_is_a_miss_and_nobody_is_asked_for_a_while() -> None:
    async with Ledger.open(f"redis://127.0.0.1:{free_port()}/0", patience_seconds=0.0) as ledger:
        cache = LedgerCache(ledger.scripts, rest_seconds=3600)
        assert await cache.get("key") is None
        await cache.put("key", b"value", ttl_seconds=60)
        assert await cache.get("key") is None
        assert (cache.failures, cache.misses) == (1, 2)


async def test_f8_a_redis_that_hangs_holds_up_no_call_longer_than_the_deadline(
    ledger: Ledger, server: RedisServer
) -> None:
    await ledger.ping()
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    try:
        cache = LedgerCache(ledger.scripts, deadline_seconds=0.05)
        assert await cache.get("key") is None
        assert cache.failures == 1
    finally:
        server.process.send_signal(signal.SIGCONT)


async def test_after_its_rest_the_cache_is_asked_again(ledger: Ledger) -> None:
    cache = LedgerCache(ledger.scripts, deadline_seconds=0.0, rest_seconds=0.0)
    assert await cache.get("key") is None
    cache.deadline_seconds = 5.0
    await cache.put("key", b"value", ttl_seconds=60)
    assert await cache.get("key") == b"value"
