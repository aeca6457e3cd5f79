"""External calls in the ledger: a paused job holds nothing, and each of its calls takes one answer at most."""

import asyncio
from typing import Any

import pytest

from jobs.errors import LedgerCorrupt
from jobs.job import JobReference
from jobs.ledger import Ledger
from jobs.ledger.claims import Claim, Dropped, Granted, Usage
from jobs.ledger.externals import FINISHED, LATE
from tests.unit.jobs.conftest import RUN, facts

STATE = f"{RUN}/paused/000000000-000001.json.zst"
BASE = f"parley:run:{RUN}"


def job(index: int = 0) -> JobReference:
    return JobReference(RUN, index, ("hr_api",) if index >= 10 else ())


async def granted(ledger: Ledger, index: int = 0, nonce: str = "worker-0") -> Claim:
    outcome = await ledger.claims.claim(job(index), nonce)
    assert isinstance(outcome, Granted), outcome
    return outcome.claim


async def paused(ledger: Ledger, index: int = 0, *, seconds: float | None = None, calls: str = "ab") -> Claim:
    claim = await granted(ledger, index)
    assert await ledger.externals.pause(claim, STATE, [(name, seconds) for name in calls])
    return claim


async def answer(ledger: Ledger, *calls: str, index: int = 0, key: str = "key") -> tuple[str, list[str]]:
    answered = await ledger.externals.answer(RUN, index, key, calls)
    return answered.job, list(answered.calls.values())


async def end_time(ledger: Ledger, index: int = 0) -> None:
    """The time of a job's calls is over."""
    redis = ledger.scripts.redis
    calls: Any = await redis.hgetall(f"{BASE}:awaited:{index}")
    for name in [name for name, value in calls.items() if value.startswith(b"?")]:
        await redis.hset(f"{BASE}:awaited:{index}", name.decode(), "?1")
    await redis.zadd(f"{BASE}:deadlines", {str(index): 1}, xx=True)


async def sweep(ledger: Ledger) -> None:
    assert (await ledger.sweeping.sweep(RUN, "sweeper")).is_ours


async def test_s4_a_paused_job_holds_no_claim_permit_checkpoint_or_place_in_the_window(fed: Ledger) -> None:
    claim = await granted(fed, 10)
    assert await fed.checkpoints.append(claim, 0, b"delta")
    before = await fed.progress.snapshot(RUN)
    assert await fed.externals.pause(claim, STATE, [("a", None)])
    after = await fed.progress.snapshot(RUN)
    assert (before.in_flight, after.in_flight, after.paused) == (1, 0, 1)
    assert after.window == before.window - 1
    assert after.pending == before.pending, "a paused job is a pending one"
    redis = fed.scripts.redis
    assert await redis.hget(f"{BASE}:owners", "10") is None
    assert await redis.exists(f"{BASE}:checkpoint:10") == 0
    assert await redis.zcard("parley:ns:hr_api:held") == 0
    assert await fed.externals.paused(RUN) == [10]


async def test_s4_the_permit_of_a_paused_job_goes_to_the_next_in_line(fed: Ledger) -> None:
    first, _ = await granted(fed, 10), await granted(fed, 11)
    await fed.claims.claim(job(12), "waits")  # parked: both permits are taken
    assert await fed.externals.pause(first, STATE, [("a", None)])
    assert isinstance(await fed.claims.claim(job(12), "goes on"), Granted)


async def test_a_paused_job_is_not_lost_and_not_fed_again(fed: Ledger) -> None:
    await paused(fed)
    await sweep(fed)
    assert await fed.feeding.feed(RUN, "feeder", [(0, 0)])
    assert isinstance(await fed.claims.claim(job(), "a message that came late"), Dropped)
    assert await fed.externals.paused(RUN) == [0]


async def test_a_pause_that_is_sent_again_after_a_lost_answer_says_the_same(fed: Ledger) -> None:
    claim = await paused(fed)
    assert await fed.externals.pause(claim, STATE, [("a", None), ("b", None)])
    await answer(fed, "a", "b")
    assert await fed.externals.pause(claim, STATE, [("a", None), ("b", None)])
    assert await fed.externals.paused(RUN) == [], "and changes nothing"


async def test_f12_a_zombie_cannot_pause_what_another_attempt_works_on(fed: Ledger) -> None:
    zombie = await granted(fed)
    await fed.scripts.redis.zadd(f"{BASE}:claims", {"0": 0})
    await sweep(fed)
    await granted(fed, nonce="worker-1")
    assert not await fed.externals.pause(zombie, STATE, [("a", None)])
    assert await fed.externals.paused(RUN) == []
    assert (await fed.progress.snapshot(RUN)).in_flight == 1


async def test_s8_answers_come_in_any_order_and_the_last_one_sends_the_job_on(fed: Ledger) -> None:
    await paused(fed, calls="abc")
    assert await answer(fed, "b") == ("waiting", ["accepted"])
    assert await fed.externals.paused(RUN) == [0]
    queued = await fed.scripts.redis.llen("conversations")
    assert await answer(fed, "c", "a", key="other") == ("resumed", ["accepted", "accepted"])
    assert await fed.scripts.redis.llen("conversations") == queued + 1
    awaited = await fed.externals.awaited(job())
    assert awaited is not None
    assert (awaited.state_key, awaited.calls) == (STATE, {"a": "other", "b": "key", "c": "other"})
    again = await granted(fed, nonce="worker-1")
    assert again.attempt == 2, "attempts are counted on"


async def test_s8_f39_a_call_takes_one_answer_and_every_other_is_told_so(fed: Ledger) -> None:
    await paused(fed)
    assert await answer(fed, "a", key="first") == ("waiting", ["accepted"])
    assert await answer(fed, "a", key="second") == ("waiting", ["answered"])
    awaited = await fed.externals.awaited(job())
    assert awaited is not None
    assert awaited.calls == {"a": "first", "b": None}


async def test_s8_an_answer_that_is_sent_again_after_a_lost_answer_is_still_accepted(fed: Ledger) -> None:
    await paused(fed, calls="a")
    assert await answer(fed, "a") == ("resumed", ["accepted"])
    assert await answer(fed, "a") == ("running", ["accepted"])


async def test_s8_an_answer_to_a_call_that_nobody_made_changes_nothing(fed: Ledger) -> None:
    await paused(fed)
    assert await answer(fed, "z") == ("waiting", ["unknown"])
    assert await answer(fed, "a", "z") == ("waiting", ["accepted", "unknown"])
    assert await fed.externals.paused(RUN) == [0]


async def test_s17_what_is_not_paused_takes_no_answer(fed: Ledger) -> None:
    assert await answer(fed, "a") == ("running", ["unknown"])
    assert await answer(fed, "a", index=99) == ("unknown_job", [])
    assert (await fed.externals.answer("another-run", 0, "key", ["a"])).job == "unknown_run"
    claim = await paused(fed, calls="a")
    await answer(fed, "a")
    claim = await granted(fed, nonce="worker-1")
    assert await answer(fed, "a", key="again") == ("running", ["answered"])
    assert await fed.claims.settle(claim, "ok", Usage())
    assert await answer(fed, "a") == ("finished", [])
    assert await fed.scripts.redis.exists(f"{BASE}:awaited:0") == 0, "nothing of a finished job is kept"


async def test_f39_of_twenty_callers_at_once_one_wins_each_call(fed: Ledger) -> None:
    await paused(fed, calls="abcd")
    outcomes = await asyncio.gather(*(fed.externals.answer(RUN, 0, f"key-{who}", list("abcd")) for who in range(20)))
    for call in "abcd":
        told = [outcome.calls[call] for outcome in outcomes]
        assert (told.count("accepted"), told.count("answered")) == (1, 19)
    assert await fed.externals.paused(RUN) == []
    assert (await fed.progress.snapshot(RUN)).window == 20


async def test_f39_a_call_whose_time_is_over_takes_no_answer(fed: Ledger) -> None:
    await paused(fed, seconds=60)
    await end_time(fed)
    assert await answer(fed, "a") == ("resumed", ["late"]), "and the other call is late as well"
    assert await answer(fed, "b") == ("running", ["late"])
    awaited = await fed.externals.awaited(job())
    assert awaited is not None
    assert awaited.calls == {"a": LATE, "b": LATE}


async def test_f39_the_sweep_sends_a_job_on_whose_calls_are_late(fed: Ledger) -> None:
    await paused(fed, seconds=60)
    assert await answer(fed, "a") == ("waiting", ["accepted"])
    await sweep(fed)
    assert await fed.externals.paused(RUN) == [0], "not before its time"
    await end_time(fed)
    await sweep(fed)
    assert await fed.externals.paused(RUN) == []
    assert await fed.scripts.redis.zcard(f"{BASE}:deadlines") == 0
    awaited = await fed.externals.awaited(job())
    assert awaited is not None
    assert awaited.calls == {"a": "key", "b": LATE}
    assert isinstance(await fed.claims.claim(job(), "worker-1"), Granted)


async def test_a_call_without_a_deadline_waits_for_ever(fed: Ledger) -> None:
    await paused(fed)
    assert await fed.scripts.redis.zcard(f"{BASE}:deadlines") == 0
    awaited = await fed.externals.awaited(job())
    assert awaited is not None
    assert awaited.ends == {}


async def test_the_end_of_a_calls_time_can_be_asked_for(fed: Ledger) -> None:
    await paused(fed, seconds=60)
    seconds, _ = await fed.scripts.redis.time()
    awaited = await fed.externals.awaited(job())
    assert awaited is not None
    assert {call: 58 < ends - seconds < 62 for call, ends in awaited.ends.items()} == {"a": True, "b": True}


async def test_the_first_of_a_jobs_deadlines_counts_as_long_as_its_call_waits(fed: Ledger) -> None:
    claim = await granted(fed)
    await fed.externals.pause(claim, STATE, [("a", 100), ("b", 50), ("c", None)])
    awaited = await fed.externals.awaited(job())
    assert awaited is not None
    assert sorted(awaited.ends) == ["a", "b"]
    redis = fed.scripts.redis
    assert await redis.zscore(f"{BASE}:deadlines", "0") == awaited.ends["b"] * 1000
    await answer(fed, "b")
    assert await redis.zscore(f"{BASE}:deadlines", "0") == awaited.ends["a"] * 1000
    await answer(fed, "a")
    assert await redis.zscore(f"{BASE}:deadlines", "0") is None
    assert await fed.externals.paused(RUN) == [0], "the one without a deadline still waits"


async def test_s9_a_job_pauses_again_and_its_earlier_calls_stay_answered(fed: Ledger) -> None:
    await paused(fed, calls="a")
    for attempt, call in enumerate("bc", start=2):
        assert (await answer(fed, chr(ord(call) - 1), key=f"key-{attempt}"))[0] == "resumed"
        claim = await granted(fed, nonce=f"worker-{attempt}")
        assert claim.attempt == attempt
        assert await fed.externals.pause(claim, f"state-{attempt}", [(call, None)])
    assert await answer(fed, "a", key="another") == ("waiting", ["answered"])
    awaited = await fed.externals.awaited(job())
    assert awaited is not None
    assert (awaited.state_key, awaited.calls) == ("state-3", {"a": "key-2", "b": "key-3", "c": None})


async def test_a_cancelled_run_waits_for_nobody(fed: Ledger) -> None:
    await paused(fed)
    await paused(fed, 11, seconds=3600)
    await fed.runs.request_cancellation(RUN)
    await sweep(fed)
    assert await fed.externals.paused(RUN) == []
    outcome = await fed.claims.claim(job(), "worker-1")
    assert isinstance(outcome, Granted)
    assert outcome.cancelled
    assert await answer(fed, "a") == ("running", ["late"])


async def test_a_job_that_never_paused_waited_for_nothing(fed: Ledger) -> None:
    await granted(fed)
    assert await fed.externals.awaited(job()) is None


# After the ledger was lost


async def test_c3_a_paused_job_is_entered_again_with_the_answers_it_has(fed: Ledger) -> None:
    await fed.scripts.redis.flushall()
    await fed.runs.register(facts())
    assert await fed.externals.restore(
        RUN, 3, 0, f"{RUN}/paused/000000003-000004.json.zst", [("a", "k", 9), ("b", None, 9)]
    )
    assert await fed.externals.paused(RUN) == [3]
    awaited = await fed.externals.awaited(job(3))
    assert awaited is not None
    assert awaited.calls == {"a": "k", "b": None}
    assert await answer(fed, "a", index=3, key="another") == ("waiting", ["answered"])
    assert await answer(fed, "b", index=3) == ("resumed", ["accepted"])
    assert (await granted(fed, 3)).attempt == 5, "attempts are numbered on"


async def test_c3_one_whose_calls_are_all_answered_goes_on_at_once(fed: Ledger) -> None:
    await fed.scripts.redis.flushall()
    await fed.runs.register(facts())
    assert await fed.externals.restore(RUN, 3, 0, STATE, [("a", "k", None)])
    assert await fed.externals.paused(RUN) == []
    assert (await granted(fed, 3)).attempt == 2


async def test_c3_what_the_ledger_knows_better_is_left_alone(fed: Ledger) -> None:
    assert not await fed.externals.restore(RUN, 3, 0, STATE, [("a", None, None)]), "it is in the window"
    await paused(fed)
    assert not await fed.externals.restore(RUN, 0, 0, "another", [("z", None, None)])
    claim = await granted(fed, 1)
    await fed.claims.settle(claim, "ok", Usage())
    assert not await fed.externals.restore(RUN, 1, 0, STATE, [("a", None, None)]), "it is done"


# Being told


async def test_whoever_listens_is_told_of_each_job_that_pauses_and_of_the_end(ledger: Ledger) -> None:
    await ledger.runs.register(facts(jobs=1))
    assert await ledger.feeding.take_lease(RUN, "feeder")
    await ledger.feeding.feed(RUN, "feeder", [(0, 0)])
    async with ledger.externals.listening(RUN) as listening:
        assert await listening.next(0.0) is None
        await paused(ledger, calls="a")
        assert await listening.next(10) == "0"
        await answer(ledger, "a")
        assert await listening.next(0.0) is None, "only pauses are told"
        await ledger.claims.settle(await granted(ledger, nonce="worker-1"), "ok", Usage())
        assert await listening.next(10) == FINISHED


async def test_an_answer_of_another_version_is_no_outcome(fed: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    fed.scripts.script("answer").text = "return {'thrilled'}"
    with pytest.raises(LedgerCorrupt, match="same version"):
        await answer(fed, "a")
