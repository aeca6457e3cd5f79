"""Fetches ahead of a reader in a few threads, in order and with bounded memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

Item = TypeVar("Item")
Fetched = TypeVar("Fetched")

THREADS: Final = 4


def fetch_ahead(fetch: Callable[[Item], Fetched], items: Iterable[Item]) -> Iterator[tuple[Item, Future[Fetched]]]:
    """Return each item with its ended fetch, at most a handful of fetches ahead; `result()` raises what it raised."""
    ahead: deque[tuple[Item, Future[Fetched]]] = deque()
    executor = ThreadPoolExecutor(THREADS, thread_name_prefix="fetch-ahead")
    try:
        for item in items:
            ahead.append((item, executor.submit(fetch, item)))
            if len(ahead) > THREADS:
                yield ahead.popleft()
        while ahead:
            yield ahead.popleft()
    finally:
        executor.shutdown(cancel_futures=True)
