"""Open sessions in the ledger: who may tear them down, and where their permits are meanwhile."""

import asyncio
from typing import Any

import pytest

from jobs.errors import LedgerCorrupt
from jobs.job import JobReference
from jobs.ledger import Ledger
from jobs.ledger.claims import Claim, Granted, Parked, Usage
from jobs.ledger.sessions import LeftSessions, OpenSession
from tests.unit.jobs.conftest import RUN

SCRATCH: dict[str, Any] = {"rest": {"hr_api": {"desk": "d-1", "text": "Grüße"}}}


def job(index: int) -> JobReference:
    return JobReference(RUN, index, ("hr_api",))


async def granted(ledger: Ledger, index: int, nonce: str = "worker-0") -> Claim:
    outcome = await ledger.claims.claim(job(index), nonce)
    assert isinstance(outcome, Granted), outcome
    return outcome.claim


def session(claim: Claim, scratch: dict[str, Any] | None = None) -> OpenSession:
    return OpenSession(claim.fence, f"{claim.job.task_id}.{claim.attempt}", ("hr_api",), scratch or {})


async def opened(ledger: Ledger, index: int = 10, nonce: str = "worker-0") -> tuple[Claim, OpenSession]:
    claim = await granted(ledger, index, nonce)
    noted = session(claim, SCRATCH)
    assert await ledger.sessions.open(claim, noted) is not None
    return claim, noted


async def die(ledger: Ledger, index: int = 10) -> None:
    """The holder of a job's claim is dead, and the sweep notices."""
    await ledger.scripts.redis.zadd(f"parley:run:{RUN}:claims", {str(index): 0})
    assert (await ledger.sweeping.sweep(RUN, "sweeper")).expired == 1


async def hurry(ledger: Ledger, index: int = 10) -> None:
    """The time until the reaper looks at a job's sessions is over."""
    await ledger.scripts.redis.zadd("parley:sessions", {f"{RUN}/{index}": 1}, xx=True)


async def end_quarantine(ledger: Ledger, index: int = 10) -> None:
    await ledger.scripts.redis.zadd(f"parley:run:{RUN}:left", {str(index): 1}, xx=True)


async def left(ledger: Ledger) -> int:
    return (await ledger.progress.snapshot(RUN)).sessions_left


async def held(ledger: Ledger) -> int:
    return (await ledger.permits.statistics("hr_api")).held


async def nothing_is_kept(ledger: Ledger) -> bool:
    keys = await ledger.scripts.redis.keys(f"parley:run:{RUN}:session:*")
    return not keys and await ledger.scripts.redis.zcard("parley:sessions") == 0 and await left(ledger) == 0


async def test_a_session_is_forgotten_with_its_teardown_and_nothing_stays(fed: Ledger) -> None:
    claim, noted = await opened(fed)
    assert await fed.sessions.take() == []
    await fed.sessions.close(claim.job, [noted])
    assert await nothing_is_kept(fed)
    assert await held(fed) == 1, "the job is not settled yet"
    assert await fed.claims.settle(claim, "ok", Usage())
    assert await held(fed) == 0


async def test_a_session_of_a_lost_claim_is_not_noted(fed: Ledger) -> None:
    claim = await granted(fed, 10)
    await die(fed)
    assert await fed.sessions.open(claim, session(claim)) is None
    assert await nothing_is_kept(fed)


async def test_f12_a_zombie_notes_no_session_in_place_of_the_one_that_lives(fed: Ledger) -> None:
    claim = await granted(fed, 10)
    await die(fed)
    await granted(fed, 10, "worker-1")
    assert await fed.sessions.open(claim, session(claim)) is None
    assert await nothing_is_kept(fed)


async def test_a_live_holders_session_is_never_taken_however_often_somebody_looks(fed: Ledger) -> None:
    claim, _ = await opened(fed)
    for _ in range(3):
        await hurry(fed)
        assert await fed.sessions.take() == []
    due = await fed.scripts.redis.zscore("parley:sessions", f"{RUN}/10")
    assert due == await fed.scripts.redis.zscore(f"parley:run:{RUN}:claims", str(claim.job.index))


async def test_f3_a_dead_holders_session_is_told_to_the_next_attempt_which_forgets_it(fed: Ledger) -> None:
    _, noted = await opened(fed)
    await die(fed)
    assert (await left(fed), await held(fed)) == (1, 1)
    again = await granted(fed, 10, "worker-1")
    earlier = await fed.sessions.open(again, session(again))
    assert earlier is not None
    assert (earlier.sessions, earlier.quarantine_is_over) == ((noted,), False)
    await fed.sessions.close(again.job, [noted])
    assert await left(fed) == 0
    await fed.sessions.close(again.job, [session(again)])
    assert await nothing_is_kept(fed)


async def test_f3_the_quarantine_of_a_second_death_begins_anew(fed: Ledger) -> None:
    _, noted = await opened(fed)
    await die(fed)
    await end_quarantine(fed)
    again = await granted(fed, 10, "worker-1")
    earlier = await fed.sessions.open(again, session(again))
    assert earlier is not None
    assert earlier.quarantine_is_over
    await fed.sessions.close(again.job, [noted])
    await die(fed)
    third = await granted(fed, 10, "worker-2")
    earlier = await fed.sessions.open(third, session(third))
    assert earlier is not None
    assert not earlier.quarantine_is_over


async def test_f3_the_quarantine_counts_from_the_first_death_while_the_session_stays_open(fed: Ledger) -> None:
    await opened(fed)
    await die(fed)
    await end_quarantine(fed)
    again = await granted(fed, 10, "worker-1")
    await fed.sessions.open(again, session(again))
    await die(fed)
    third = await granted(fed, 10, "worker-2")
    earlier = await fed.sessions.open(third, session(third))
    assert earlier is not None
    assert (len(earlier.sessions), earlier.quarantine_is_over) == (2, True)


async def test_f3_a_claim_that_comes_before_the_sweep_finds_the_dead_holders_session_in_quarantine(fed: Ledger) -> None:
    _, noted = await opened(fed)
    await fed.scripts.redis.zadd(f"parley:run:{RUN}:claims", {"10": 0})
    again = await granted(fed, 10, "worker-1")
    earlier = await fed.sessions.open(again, session(again))
    assert earlier is not None
    assert (earlier.sessions, earlier.quarantine_is_over, await left(fed)) == ((noted,), False, 1)


async def test_f3_what_the_reaper_tried_in_vain_is_told_to_the_next_attempt(fed: Ledger) -> None:
    _, noted = await opened(fed)
    await die(fed)
    await hurry(fed)
    assert len(await fed.sessions.take()) == 1
    again = await granted(fed, 10, "worker-1")
    earlier = await fed.sessions.open(again, session(again))
    assert earlier is not None
    assert earlier.sessions == (noted,)


async def test_f3_a_reaper_that_ends_after_the_next_attempt_began_takes_no_permit_from_it(fed: Ledger) -> None:
    _, noted = await opened(fed)
    await die(fed)
    await hurry(fed)
    assert len(await fed.sessions.take()) == 1
    await granted(fed, 10, "worker-1")
    await fed.sessions.close(job(10), [noted])
    assert (await held(fed), await left(fed)) == (1, 0)


async def test_f3_a_session_that_outlived_its_quarantine_keeps_no_permit_of_a_settled_job(fed: Ledger) -> None:
    claim, noted = await opened(fed)
    await fed.sessions.leave(claim.job, noted)
    await end_quarantine(fed)
    await fed.claims.settle(claim, "ok", Usage())
    assert (await held(fed), await left(fed)) == (0, 1)


async def test_f3_a_dead_holders_session_is_the_reapers_when_no_attempt_comes(fed: Ledger) -> None:
    _, noted = await opened(fed)
    await fed.scripts.redis.delete("ns.hr_api")
    await die(fed)
    assert await fed.sessions.take() == [], "the next attempt has the first while"
    await hurry(fed)
    assert await fed.sessions.take() == [LeftSessions(JobReference(RUN, 10), 1, (noted,))]
    assert await fed.sessions.take() == [], "under the reaper's lease"
    await fed.sessions.close(job(10), [noted])
    assert await nothing_is_kept(fed)


async def test_f3_a_session_is_not_taken_before_the_sweep_saw_its_holder_dead(fed: Ledger) -> None:
    await opened(fed)
    await fed.scripts.redis.zadd(f"parley:run:{RUN}:claims", {"10": 0})
    await hurry(fed)
    assert await fed.sessions.take() == []
    assert await left(fed) == 1
    await hurry(fed)
    assert len(await fed.sessions.take()) == 1


async def test_f3_a_dead_holders_permit_is_free_when_its_session_is_torn_down(fed: Ledger) -> None:
    _, noted = await opened(fed, 10)
    await granted(fed, 11)
    assert isinstance(await fed.claims.claim(job(12), "worker-0"), Parked)
    await die(fed, 10)
    await fed.scripts.redis.zrem(f"parley:run:{RUN}:queued:1", "10")  # nobody asks for job 10 again just now
    assert await held(fed) == 2, "quarantine"
    await hurry(fed)
    await fed.sessions.take()
    await fed.sessions.close(job(10), [noted])
    assert await held(fed) == 2, "job 12 has it"
    await granted(fed, 12)


async def test_f3_a_job_that_waits_for_its_next_attempt_keeps_the_permit_of_its_reaped_session(fed: Ledger) -> None:
    _, noted = await opened(fed, 10)
    await granted(fed, 11)
    assert isinstance(await fed.claims.claim(job(12), "worker-0"), Parked)
    await die(fed, 10)
    await hurry(fed)
    await fed.sessions.take()
    await fed.sessions.close(job(10), [noted])
    await granted(fed, 10, "worker-1")
    assert await held(fed) == 2


async def test_f3_a_permit_leaves_quarantine_after_its_time_though_the_session_is_still_open(fed: Ledger) -> None:
    claim, noted = await opened(fed, 10)
    await granted(fed, 11)
    assert isinstance(await fed.claims.claim(job(12), "worker-0"), Parked)
    await fed.sessions.leave(claim.job, noted)
    assert await fed.claims.settle(claim, "ok", Usage())
    ends = await fed.scripts.redis.zscore("parley:ns:hr_api:held", f"{RUN}/10")
    seconds, microseconds = await fed.scripts.redis.time()
    assert ends is not None
    assert 0 < ends / 1000 - (seconds + microseconds / 1e6) <= 180 - 65, "a death is noticed within 65 s"
    await fed.scripts.redis.zadd("parley:ns:hr_api:held", {f"{RUN}/10": 1})
    assert (await fed.sweeping.sweep(RUN, "sweeper")).handed_over == 1
    assert await left(fed) == 1, "still listed"


async def test_f37_a_session_whose_teardown_failed_keeps_its_permit_until_the_reaper_is_through(fed: Ledger) -> None:
    claim, noted = await opened(fed, 10)
    await granted(fed, 11)
    assert isinstance(await fed.claims.claim(job(12), "worker-0"), Parked)
    await fed.sessions.leave(claim.job, noted)
    assert await fed.sessions.take() == [], "the job is not settled yet"
    assert await fed.claims.settle(claim, "ok", Usage())
    assert (await held(fed), await left(fed)) == (2, 1)
    (taken,) = await fed.sessions.take()
    assert taken.sessions == (noted,)
    await fed.sessions.close(taken.job, taken.sessions)
    assert await nothing_is_kept(fed)
    await granted(fed, 12)


async def test_f37_the_reaper_tries_a_number_of_times_and_then_the_session_stays_listed(fed: Ledger) -> None:
    claim, noted = await opened(fed)
    await fed.sessions.leave(claim.job, noted)
    await fed.claims.settle(claim, "ok", Usage())
    for attempt in range(1, fed.sessions.most_tries + 1):
        (taken,) = await fed.sessions.take()
        assert taken.attempt == attempt
        await hurry(fed)
    assert await fed.sessions.take() == []
    await hurry(fed)
    assert await fed.sessions.take() == []
    assert await left(fed) == 1
    assert await fed.scripts.redis.hlen(f"parley:run:{RUN}:session:10") == 2, "the session and its tries"


async def test_f37_the_pauses_between_tries_grow_up_to_the_longest(fed: Ledger) -> None:
    claim, noted = await opened(fed)
    await fed.sessions.leave(claim.job, noted)
    await fed.claims.settle(claim, "ok", Usage())
    pauses = []
    for _ in range(6):
        await fed.sessions.take()
        due = await fed.scripts.redis.zscore("parley:sessions", f"{RUN}/10")
        seconds, _ = await fed.scripts.redis.time()
        assert due is not None
        pauses.append(round((due / 1000 - seconds) / 30))
        await hurry(fed)
    assert pauses == [1, 2, 4, 8, 10, 10]


async def test_f7_a_session_whose_teardown_failed_is_noted_also_in_a_ledger_that_forgot_it(fed: Ledger) -> None:
    claim, noted = await opened(fed)
    await fed.scripts.redis.flushall()
    await fed.sessions.leave(claim.job, noted)
    (taken,) = await fed.sessions.take()
    assert taken.sessions == (noted,)


async def test_f28_a_handed_on_job_has_a_while_to_take_its_session_up_and_keeps_its_permit(fed: Ledger) -> None:
    claim, noted = await opened(fed)
    await fed.claims.give_back(claim)
    assert await fed.sessions.take() == []
    assert await held(fed) == 1
    again = await granted(fed, 10, "worker-1")
    earlier = await fed.sessions.open(again, session(again, SCRATCH))
    assert earlier is not None
    assert earlier.sessions == (noted,)


async def test_a_job_that_is_postponed_for_long_leaves_its_session_to_the_reaper(fed: Ledger) -> None:
    claim, noted = await opened(fed)
    await fed.claims.give_back(claim, delay_seconds=300)
    (taken,) = await fed.sessions.take()
    assert taken.sessions == (noted,)
    await fed.sessions.close(taken.job, taken.sessions)
    assert await held(fed) == 0


async def test_two_reapers_never_have_the_same_sessions(fed: Ledger) -> None:
    for index in (10, 11):
        claim, noted = await opened(fed, index)
        await fed.sessions.leave(claim.job, noted)
        await fed.claims.settle(claim, "ok", Usage())
    looks = await asyncio.gather(*(fed.sessions.take() for _ in range(10)))
    assert sorted(taken.job.index for look in looks for taken in look) == [10, 11]


async def test_f12_a_zombies_late_close_forgets_its_own_session_only(fed: Ledger) -> None:
    _, noted = await opened(fed)
    await die(fed)
    again = await granted(fed, 10, "worker-1")
    mine = session(again)
    await fed.sessions.open(again, mine)
    await fed.sessions.close(again.job, [noted])  # the zombie's
    await die(fed)
    await hurry(fed)
    (taken,) = await fed.sessions.take()
    assert taken.sessions == (mine,)


async def test_f41_a_run_killed_as_a_whole_leaves_its_sessions_to_the_next_attempts(fed: Ledger) -> None:
    _, noted = await opened(fed)
    assert await fed.claims.expire_all(RUN) == 1
    assert (await left(fed), await fed.sessions.take()) == (1, [])
    await hurry(fed)
    (taken,) = await fed.sessions.take()
    assert taken.sessions == (noted,)


async def test_a_session_that_cannot_be_read_says_whose_it_is(fed: Ledger) -> None:
    claim, _ = await opened(fed)
    await fed.scripts.redis.hset(f"parley:run:{RUN}:session:10", "9:older", "{")
    with pytest.raises(LedgerCorrupt, match="9:older"):
        await fed.sessions.open(claim, session(claim))


async def test_f7_no_permit_is_given_out_while_a_lost_ledger_is_quiet_and_those_who_wait_come_after_it(
    fed: Ledger,
) -> None:
    await fed.permits.keep_quiet(3600)
    assert isinstance(await fed.claims.claim(job(10), "worker-0"), Parked)
    assert isinstance(await fed.claims.claim(JobReference(RUN, 0), "worker-0"), Granted), "stateless jobs go on"
    assert (await fed.sweeping.sweep(RUN, "sweeper")).handed_over == 0
    await fed.scripts.redis.delete("parley:quiet")
    assert (await fed.sweeping.sweep(RUN, "sweeper")).handed_over == 1
    await granted(fed, 10)
