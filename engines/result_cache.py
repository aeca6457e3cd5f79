"""Results of read-only tools, kept so that the same call is not made twice."""

from typing import Protocol


class SharedCache(Protocol):
    """A cache that all workers share, keyed by text; a miss is None. Failures are misses: it never raises."""

    async def get(self, key: str) -> bytes | None:
        """Return what is kept, None when there is nothing or the cache cannot be asked."""

    async def put(self, key: str, value: bytes, *, ttl_seconds: float) -> None:
        """Keep a value for so long."""
