"""Group commit: records wait a moment for their neighbours, go up as one shard, and only then count as written."""

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from random import Random
from types import TracebackType
from typing import Self

from results.async_store import AsyncStore
from results.batch import Batch
from results.entries import STATUSES, Entry
from results.errors import RecordInvalid, ShardNotWritten, SinkClosed
from results.keys import ShardName, check_run_id, check_writer
from results.shard_upload import RetryPolicy, upload

__all__ = ["STATUSES", "Entry", "ShardStatistics", "ShardWriter"]


@dataclass(frozen=True, slots=True)
class ShardStatistics:
    """What a writer has done and what it holds; `last_error` is None while the store works."""

    shards: int
    records: int
    raw_bytes: int
    stored_bytes: int
    tries: int
    failures: int
    waiting_records: int
    waiting_bytes: int
    uploading: int
    last_error: str | None


class ShardWriter:
    """Commits the records of one run from one process; `write` returns when its record is durable.

    A failed shard is kept: writing one of its records again (the same entry), a later success, `flush` and a full
    buffer try it again with the same key and the same bytes. Use with `async with`; the store stays the caller's.
    """

    def __init__(
        self,
        store: AsyncStore,
        run_id: str,
        *,
        writer: str,
        linger_seconds: float = 2.0,
        max_bytes: int = 16 << 20,
        max_records: int = 5000,
        high_water_bytes: int = 128 << 20,
        tries: int = 5,
        try_timeout_seconds: float = 60.0,
        backoff_seconds: float = 0.1,
        others: Callable[[], int] | None = None,
        clock: Callable[[], float] = time.time,
        chance: Random | None = None,
        token: str | None = None,
    ) -> None:
        """`others` counts the conversations that may still add a record soon: at 0 nobody is waited for.

        `token` tells two lives of the same `writer` apart; without it one is drawn.
        """
        self._store = store
        self._run_id = check_run_id(run_id)
        self._writer = check_writer(f"{writer}.{token if token is not None else secrets.token_hex(4)}")
        self._linger_seconds = linger_seconds
        self._max_bytes = max_bytes
        self._max_records = max_records
        self._high_water_bytes = high_water_bytes
        self._policy = RetryPolicy(tries, try_timeout_seconds, backoff_seconds)
        self._others = others
        self._clock = clock
        self._chance = chance if chance is not None else Random()
        self._sequence = count()
        self._slots = asyncio.Semaphore(store.threads)
        self._changed = asyncio.Event()
        self._filling: Batch | None = None
        self._linger: asyncio.TimerHandle | None = None
        self._uploads: dict[asyncio.Task[int], Batch] = {}
        self._failed: list[Batch] = []  # failed at least once and not stored yet, whether uploading again or not
        self._is_closed = False
        self._waiting_records = self._waiting_bytes = 0
        self._shards = self._records = self._raw_bytes = self._stored_bytes = self._tries = self._failures = 0
        self._last_error: str | None = None

    async def write(self, line: bytes, entry: Entry, *, linger_seconds: float | None = None) -> str:
        """Return the key of the record's shard once it is durable; `linger_seconds` shortens the wait for neighbours.

        Raises ShardNotWritten, RecordInvalid, SinkClosed. A cancelled caller does not cancel the shard.
        """
        row = _checked_row(line, entry)
        self._refuse_when_closed()
        batch = self._failed_batch_of(entry)
        if batch is None:
            await self._wait_for_room()
            batch = self._take_in(line, entry, row)
            if linger_seconds is not None and batch is self._filling:
                self._hurry(linger_seconds)
        return await asyncio.shield(batch.done)

    async def flush(self) -> None:
        """Make every record taken in so far durable, or raise ShardNotWritten."""
        self._seal()
        self._try_failed_again()
        while self._uploads:
            await asyncio.wait(list(self._uploads))
        if self._failed:
            raise ShardNotWritten(
                self._last_error or f"{len(self._failed)} shards of run {self._run_id} are not stored"
            )

    async def close(self) -> None:
        """Take in nothing more and flush; a flush cut short tells the waiting writers."""
        self._is_closed = True
        self._changed.set()
        try:
            await self.flush()
        finally:
            for task in self._uploads:
                task.cancel()

    def statistics(self) -> ShardStatistics:
        """Return the counts of this moment."""
        return ShardStatistics(
            shards=self._shards,
            records=self._records,
            raw_bytes=self._raw_bytes,
            stored_bytes=self._stored_bytes,
            tries=self._tries,
            failures=self._failures,
            waiting_records=self._waiting_records,
            waiting_bytes=self._waiting_bytes,
            uploading=len(self._uploads),
            last_error=self._last_error,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def _refuse_when_closed(self) -> None:
        if self._is_closed:
            raise SinkClosed(f"run {self._run_id}: this writer is closed; give the record to a new one")

    def _failed_batch_of(self, entry: Entry) -> Batch | None:
        """Return the kept batch that holds this record, on its way again."""
        batch = next((batch for batch in self._failed if entry in batch.entries), None)
        if batch is not None and batch.done.done():
            self._start(batch)
        return batch

    async def _wait_for_room(self) -> None:
        """Wait while too much is held; end with ShardNotWritten when the store fails meanwhile."""
        while self._waiting_bytes >= self._high_water_bytes:
            self._try_failed_again()
            failures = self._failures
            self._changed.clear()
            await self._changed.wait()
            self._refuse_when_closed()
            if self._failures > failures and self._waiting_bytes >= self._high_water_bytes:
                raise ShardNotWritten(
                    f"run {self._run_id}: {self._waiting_bytes} bytes wait for the store, so no more is taken in; "
                    f"{self._last_error}"
                )

    def _take_in(self, line: bytes, entry: Entry, row: bytes) -> Batch:
        batch = self._filling
        if batch is None:
            loop = asyncio.get_running_loop()
            batch = self._filling = Batch(loop.create_future())
            self._linger = loop.call_later(self._linger_seconds, self._seal)
        batch.add(line, entry, row)
        self._waiting_records += 1
        self._waiting_bytes += len(line)
        is_full = batch.raw_bytes >= self._max_bytes or batch.count >= self._max_records
        if (
            is_full
            or self._waiting_bytes >= self._high_water_bytes
            or (self._others is not None and self._others() <= 0)
        ):
            self._seal()
        return batch

    def _hurry(self, linger_seconds: float) -> None:
        """Let the filling batch linger no longer than this from now."""
        loop = asyncio.get_running_loop()
        if self._linger is None or self._linger.when() > loop.time() + linger_seconds:
            if self._linger is not None:
                self._linger.cancel()
            self._linger = loop.call_later(linger_seconds, self._seal)

    def _seal(self) -> None:
        batch, self._filling = self._filling, None
        if batch is None:
            return
        if self._linger is not None:
            self._linger.cancel()
        batch.key = self._next_key(batch.count)
        self._start(batch)

    def _next_key(self, records: int) -> str:
        name = ShardName(self._run_id, int(self._clock() * 1000), self._writer, next(self._sequence), records)
        return name.key

    def _try_failed_again(self) -> None:
        for batch in self._failed:
            if batch.done.done():
                self._start(batch)

    def _start(self, batch: Batch) -> None:
        loop = asyncio.get_running_loop()
        if batch.done.done():  # its writers were told of the failure; those who come now wait anew
            batch.done = loop.create_future()
        task = loop.create_task(self._commit(batch))
        self._uploads[task] = batch
        task.add_done_callback(self._ended)

    async def _commit(self, batch: Batch) -> int:
        async with self._slots:
            return await upload(
                batch,
                self._store,
                policy=self._policy,
                chance=self._chance,
                another_key=lambda: self._next_key(batch.count),
            )

    def _ended(self, task: asyncio.Task[int]) -> None:
        batch = self._uploads.pop(task)
        error = None if task.cancelled() else task.exception()
        if task.cancelled():
            self._forget(batch)
            batch.fail(SinkClosed(f"shard {batch.key}: the writer closed before it was stored; its jobs run again"))
        elif error is None:
            self._forget(batch)
            self._count(batch, tries=task.result())
            batch.done.set_result(batch.key)
            self._try_failed_again()  # the store works again
        elif isinstance(error, ShardNotWritten):
            self._failures += 1
            self._last_error = str(error)
            if batch not in self._failed:
                self._failed.append(batch)
            batch.fail(error)
        else:  # a bug: its writers must hear of it too
            self._forget(batch)
            batch.fail(error)
        self._changed.set()

    def _forget(self, batch: Batch) -> None:
        if batch in self._failed:
            self._failed.remove(batch)
        self._waiting_records -= batch.count
        self._waiting_bytes -= batch.raw_bytes

    def _count(self, batch: Batch, *, tries: int) -> None:
        self._shards += 1
        self._records += batch.count
        self._raw_bytes += batch.raw_bytes
        self._stored_bytes += len(batch.encoded())
        self._tries += tries
        self._last_error = None


def _checked_row(line: bytes, entry: Entry) -> bytes:
    """Check before the batch is touched: one bad record must not spoil its neighbours."""
    if len(line) < 2 or line.find(b"\n") != len(line) - 1:  # noqa: PLR2004 - a character and its newline
        raise RecordInvalid(f"job {entry.index}: a record is one line of JSON that ends with its only newline")
    return entry.packed()
