"""The Python API for whoever answers external calls: ask what waits, sleep until something does, give results.

with ExternalTools("runs/orders-1a2b") as tools:
    while jobs := tools.wait():
        for job in jobs:
            tools.answer(job.index, {call.call_id: look_up(call.name, call.arguments) for call in job.calls})
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self, TypeVar

from jobs.errors import BrokerUnreachable
from jobs.ledger import Ledger
from producer.children import private_broker
from producer.errors import DependencyUnreachable
from producer.external_answers import Given
from producer.external_calls import Answers, ExternalCalls, PendingJob
from producer.run_address import FoundRun, find_run
from results.async_store import AsyncStore

__all__ = ["Answers", "ExternalTools", "PendingJob", "find_run_of"]

Answer = TypeVar("Answer")
_PATIENCE_SECONDS = 5.0


class ExternalTools:
    """The external calls of one run; use with `with`, in one thread that runs no event loop of its own.

    Many processes may do so at once: each call takes the result that comes first.
    """

    def __init__(self, run: str, *, results: str | None = None, broker: str | None = None) -> None:
        """`run` is a run's directory, or its id with `results` (its store) or the `broker` of its cluster.

        Without `broker` the run must be being made on this machine: its private Redis is used. UsageInvalid for a run
        that is not there.
        """
        self._broker = broker
        self._runner = asyncio.Runner()
        self._opened: AsyncExitStack | None = None
        self._calls: ExternalCalls | None = None
        self._url = ""
        self._finished = False
        try:
            self._found = self._runner.run(find_run_of(run, results, broker))
        except BaseException:
            self._runner.close()
            raise

    @property
    def run_id(self) -> str:
        """Return the run's id."""
        return self._found.run_id

    @property
    def is_finished(self) -> bool:
        """Say whether the last `wait` found that every job of the run is settled."""
        return self._finished

    def pending(self) -> list[PendingJob]:
        """Return every job that waits for results now, with the calls that have none yet."""
        return self._do(lambda calls: calls.pending())

    def wait(self, timeout_seconds: float | None = None) -> list[PendingJob]:
        """Sleep until jobs wait that no earlier `wait` returned, and return those.

        Empty when the time is over or the run is (`is_finished`). The ledger wakes it: nothing is polled.
        """

        async def waited(calls: ExternalCalls) -> list[PendingJob]:
            jobs = await calls.wait(timeout_seconds)
            self._finished = calls.is_finished
            return jobs

        return self._do(waited)

    def answer(self, job: int | str, given: Given) -> Answers:
        """Give results to a job: `{call_id: result}`, or a list of `{"call_id", "result"}` and `{"call_id", "error"}`.

        All of them or some, in any order. Raises, before anything is taken, NoSuchJob, NotPaused (S17), CallUnknown
        and ResultInvalid. `Answers.refused` says which were late or answered already.
        """
        return self._do(lambda calls: calls.answer(job, given))

    def close(self) -> None:
        """Close the connections."""
        try:
            self._runner.run(self._close())
        finally:
            self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _do(self, operation: Callable[[ExternalCalls], Awaitable[Answer]]) -> Answer:
        return self._runner.run(self._with_calls(operation))

    async def _with_calls(self, operation: Callable[[ExternalCalls], Awaitable[Answer]]) -> Answer:
        try:
            return await operation(await self._open())
        except BrokerUnreachable as failure:
            if self._broker is not None:
                raise
            await self._close()
            # A run that was started again has another private Redis.
            if private_broker(self._found.store.url, self.run_id) in {None, self._url}:
                raise DependencyUnreachable(
                    f"run {self.run_id} is not being made any more ({failure}); start it again (parley run …: the same "
                    "command resumes), then repeat this"
                ) from failure
            return await operation(await self._open())

    async def _open(self) -> ExternalCalls:
        if self._calls is None:
            self._url = ledger_url(self._found, self._broker)
            async with AsyncExitStack() as stack:
                ledger = await stack.enter_async_context(Ledger.open(self._url, patience_seconds=_PATIENCE_SECONDS))
                await ledger.ping()
                store = await stack.enter_async_context(AsyncStore(self._found.store))
                self._opened, self._calls = stack.pop_all(), ExternalCalls(self._found, ledger, store)
        return self._calls

    async def _close(self) -> None:
        opened, self._opened, self._calls = self._opened, None, None
        if opened is not None:
            await opened.aclose()


def ledger_url(found: FoundRun, broker: str | None) -> str:
    """Return the ledger that takes answers of a run: the one named, else that of the run on this machine.

    DependencyUnreachable where there is none: results that nobody takes are not stored.
    """
    url = broker or private_broker(found.store.url, found.run_id)
    if url is None:
        raise DependencyUnreachable(
            f"run {found.run_id} is not being made on this machine, so there is nobody to take answers, and nothing "
            "was stored; start it again (parley run …: the same command resumes), or name its cluster's Redis with "
            "--broker redis://…"
        )
    return url


async def find_run_of(run: str, results: str | None, broker: str | None) -> FoundRun:
    """Return the run; the ledger of a `broker` knows where the results of one lie that is named by its id alone."""
    if broker is not None and results is None and "/" not in run:
        async with Ledger.open(broker, patience_seconds=_PATIENCE_SECONDS) as ledger:
            info = await ledger.runs.info(run)
        results = None if info is None else info.results
    return await asyncio.to_thread(find_run, run, results)
