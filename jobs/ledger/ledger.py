"""The ledger's doors, opened together on one connection."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

from jobs.errors import BrokerUnreachable
from jobs.ledger.checkpoints import Checkpoints
from jobs.ledger.claims import Claims
from jobs.ledger.connection import PASSING, ScriptRunner, connect
from jobs.ledger.externals import Externals
from jobs.ledger.feeding import Feeding
from jobs.ledger.permits import Permits
from jobs.ledger.progress import Progress
from jobs.ledger.runs import Runs
from jobs.ledger.sessions import Sessions
from jobs.ledger.shared_cache import LedgerCache
from jobs.ledger.sweeping import Sweeping


@dataclass(frozen=True, slots=True)
class Ledger:
    """What a cluster remembers of its jobs. Source: the design's section on claims, permits and the window."""

    url: str
    scripts: ScriptRunner
    runs: Runs
    feeding: Feeding
    claims: Claims
    checkpoints: Checkpoints
    permits: Permits
    sessions: Sessions
    externals: Externals
    cache: LedgerCache
    progress: Progress
    sweeping: Sweeping

    @classmethod
    def on(
        cls,
        scripts: ScriptRunner,
        *,
        lease_seconds: float = 60.0,
        message_grace_seconds: float = 10.0,
        reap_lease_seconds: float = 30.0,
    ) -> Self:
        """Build every door on one script runner."""
        return cls(
            url=scripts.url,
            scripts=scripts,
            runs=Runs(scripts),
            feeding=Feeding(scripts),
            claims=Claims(scripts, lease_seconds=lease_seconds),
            checkpoints=Checkpoints(scripts),
            permits=Permits(scripts),
            sessions=Sessions(scripts, lease_seconds=lease_seconds, reap_lease_seconds=reap_lease_seconds),
            externals=Externals(scripts, lease_seconds=lease_seconds),
            cache=LedgerCache(scripts),
            progress=Progress(scripts),
            sweeping=Sweeping(scripts, message_grace_seconds=message_grace_seconds),
        )

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        url: str,
        *,
        lease_seconds: float = 60.0,
        message_grace_seconds: float = 10.0,
        patience_seconds: float = 60.0,
        socket_timeout_seconds: float = 10.0,
        reap_lease_seconds: float = 30.0,
        connections: int = 8,
    ) -> AsyncIterator[Self]:
        """Open the ledger of a broker and close it at the end. Connects at the first call, see :meth:`ping`."""
        redis = connect(url, socket_timeout_seconds=socket_timeout_seconds, connections=connections)
        scripts = ScriptRunner(redis, url, patience_seconds=patience_seconds, exchange_seconds=socket_timeout_seconds)
        try:
            yield cls.on(
                scripts,
                lease_seconds=lease_seconds,
                message_grace_seconds=message_grace_seconds,
                reap_lease_seconds=reap_lease_seconds,
            )
        finally:
            await scripts.close()

    async def ping(self) -> None:
        """Ask the broker for a sign of life. Raises :class:`BrokerUnreachable` naming its host."""
        try:
            await self.scripts.redis.ping()
        except PASSING as failure:
            raise BrokerUnreachable(self.url, str(failure)) from failure
