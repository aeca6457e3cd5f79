"""The heartbeat: one renewal for all jobs, losses brought back, its own clock when nobody answers."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from jobs.errors import BrokerUnreachable
from jobs.job import JobReference
from jobs.ledger.claims import Claim, Renewal
from workers.heartbeat import Heartbeat


@dataclass
class Ledger:
    """Answers renewals as told."""

    lease_seconds: float = 60.0
    answer: Renewal | Exception = field(default_factory=lambda: Renewal(False, frozenset()))
    asked: list[tuple[str, list[int]]] = field(default_factory=list)

    async def renew(self, run_id: str, claims: Iterable[Claim]) -> Renewal:
        self.asked.append((run_id, [claim.job.index for claim in claims]))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def claim(index: int, run_id: str = "run") -> Claim:
    return Claim(JobReference(run_id, index), 1, "nonce")


async def test_all_jobs_of_a_run_are_renewed_in_one_call_and_finished_ones_are_not() -> None:
    ledger = Ledger()
    heart = Heartbeat(ledger, 15, Clock())  # type: ignore[arg-type]
    with heart.keeping(claim(1)), heart.keeping(claim(2)), heart.keeping(claim(7, "other")):
        with heart.keeping(claim(3)):
            pass
        await heart.beat()
    await heart.beat()
    assert ledger.asked == [("run", [1, 2]), ("other", [7])]


async def test_a_lost_claim_and_a_cancelled_run_are_brought_back() -> None:
    ledger = Ledger(answer=Renewal(True, frozenset({2})))
    heart = Heartbeat(ledger, 15, Clock())  # type: ignore[arg-type]
    with heart.keeping(claim(1)) as first, heart.keeping(claim(2)) as second:
        await heart.beat()
        assert (first.is_lost, first.is_cancelled, second.is_lost) == (False, True, True)


async def test_f12_a_process_cut_off_from_the_ledger_gives_its_jobs_up_when_their_lease_is_over() -> None:
    clock, ledger = Clock(), Ledger(answer=BrokerUnreachable("redis://host", "timed out"))
    heart = Heartbeat(ledger, 15, clock)  # type: ignore[arg-type]
    with heart.keeping(claim(1)) as lease:
        clock.now = 59
        await heart.beat()
        assert not lease.is_lost
        clock.now = 61
        assert lease.is_lost
        ledger.answer = Renewal(False, frozenset())
        await heart.beat()
        assert not lease.is_lost, "nobody took it meanwhile: the ledger says it is still ours"
