"""Lets a loop use a blocking store: its calls run in four threads of their own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from results.store_contract import Store, StoredObject

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


class AsyncStore:
    """A store for a loop; errors are the store's own. Use with `async with`."""

    def __init__(self, store: Store, *, threads: int = 4) -> None:
        self.store = store
        self.threads = threads
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="store")

    @property
    def url(self) -> str:
        """Where the objects lie."""
        return self.store.url

    async def in_thread(
        self, function: Callable[Parameters, Answer], *arguments: Parameters.args, **options: Parameters.kwargs
    ) -> Answer:
        """Run something that blocks or computes in one of the store's threads."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, partial(function, *arguments, **options))

    async def put(self, key: str, data: bytes) -> None:
        """Store the object, replacing one that is there."""
        await self.in_thread(self.store.put, key, data)

    async def put_new(self, key: str, data: bytes) -> None:
        """Store the object unless the key is taken."""
        await self.in_thread(self.store.put_new, key, data)

    async def get(self, key: str) -> bytes:
        """Return the whole object."""
        return await self.in_thread(self.store.get, key)

    async def get_tail(self, key: str, nbytes: int) -> bytes:
        """Return the last bytes of the object."""
        return await self.in_thread(self.store.get_tail, key, nbytes)

    async def list(self, prefix: str = "") -> list[StoredObject]:
        """Return the objects below a folder, sorted by key."""
        return await self.in_thread(lambda: [*self.store.list(prefix)])

    async def delete(self, key: str) -> None:
        """Remove the object; a missing one is no error."""
        await self.in_thread(self.store.delete, key)

    async def check(self) -> None:
        """Write and delete a probe object."""
        await self.in_thread(self.store.check)

    async def close(self) -> None:
        """Start no further call; one that hangs is not waited for, its own deadline ends it."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
