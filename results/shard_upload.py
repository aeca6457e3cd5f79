"""Stores one batch with a bounded number of tries, always the same bytes under the same key."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

import structlog

from results.async_store import AsyncStore
from results.batch import Batch
from results.errors import AlreadyStored, ResultsError, ShardNotWritten, StoreRefused
from results.store_contract import Store

REFUSALS_MAXIMUM: Final = 2  # the second with fresh credentials; more do not change a no

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, how long and with what pauses a shard is tried; pauses are drawn from 0 to a doubling ceiling."""

    tries: int = 5
    try_timeout_seconds: float = 60.0
    backoff_seconds: float = 0.1
    backoff_ceiling_seconds: float = 5.0

    def pause_seconds(self, failures: int, chance: Random) -> float:
        """Return how long to wait after so many failures."""
        return chance.uniform(0.0, min(self.backoff_ceiling_seconds, self.backoff_seconds * 2 ** (failures - 1)))


async def upload(
    batch: Batch, store: AsyncStore, *, policy: RetryPolicy, chance: Random, another_key: Callable[[], str]
) -> int:
    """Store the batch and return the number of tries; ShardNotWritten after the last one."""
    refusals = 0
    cause = "no try was allowed"
    number = 0
    for number in range(1, policy.tries + 1):
        try:
            async with asyncio.timeout(policy.try_timeout_seconds):
                await store.in_thread(_store_once, store.store, batch, another_key)
            return number
        except TimeoutError:
            cause = f"no answer within {policy.try_timeout_seconds:g} s"
        except StoreRefused as error:
            cause = str(error)
            refusals += 1
        except ResultsError as error:
            cause = str(error)
        if refusals >= REFUSALS_MAXIMUM or number == policy.tries:
            break
        log.warning("shard put failed", key=batch.key, attempt=number, cause=cause)
        await asyncio.sleep(policy.pause_seconds(number, chance))
    raise ShardNotWritten(
        f"shard {batch.key} in {store.url}: {number} tries failed, the last one: {cause}; "
        f"its {batch.count} records are kept, write them again once the store works"
    )


def _store_once(store: Store, batch: Batch, another_key: Callable[[], str]) -> None:
    blob = batch.encoded()
    try:
        store.put_new(batch.key, blob)
    except AlreadyStored:
        if store.get(batch.key) == blob:
            return  # an earlier try of ours went through although it looked failed
        log.warning("shard key taken", key=batch.key)
        batch.key = another_key()
        store.put_new(batch.key, blob)
