"""The ledger on a real Redis: claims, permits, checkpoints, feeding and sweeping, as jobs meet them."""

import asyncio
import json
from collections.abc import Sequence

import orjson
import pytest

from jobs.errors import BrokerUnreachable, RunConflict, RunUnknown
from jobs.job import JobReference
from jobs.ledger import Ledger
from jobs.ledger.claims import Claim, Dropped, Exhausted, Granted, Parked, Usage
from tests.support.redis_server import RedisServer, free_port
from tests.unit.jobs.conftest import RUN, facts


def job(index: int) -> JobReference:
    return JobReference(RUN, index)


async def granted(ledger: Ledger, index: int, nonce: str = "worker-0") -> Claim:
    outcome = await ledger.claims.claim(job(index), nonce)
    assert isinstance(outcome, Granted), outcome
    return outcome.claim


async def messages(ledger: Ledger, queue: str = "conversations") -> list[int]:
    """The indices in a queue, the one taken next first."""
    raw: Sequence[bytes] = await ledger.scripts.redis.lrange(queue, 0, -1)  # type: ignore[assignment]
    return [json.loads(json.loads(text)["body"])[0][1] for text in reversed(raw)]


async def take_all(ledger: Ledger, queue: str = "conversations") -> None:
    await ledger.scripts.redis.delete(queue)


async def test_a_fed_job_is_one_message_that_holds_ids_only(fed: Ledger) -> None:
    raw = await fed.scripts.redis.lindex("conversations", -1)
    assert raw is not None
    message = orjson.loads(raw)
    assert orjson.loads(message["body"])[0] == [RUN, 0, []]
    assert message["headers"]["id"] == f"{RUN}.000000"
    assert message["headers"]["argsrepr"] == f"{RUN}.000000"
    assert await messages(fed) == list(range(10))
    assert await messages(fed, "ns.hr_api") == list(range(10, 20))


async def test_feeding_the_same_jobs_again_sends_nothing(fed: Ledger) -> None:
    assert await fed.feeding.feed(RUN, "feeder", [(index, 0) for index in range(5)])
    assert await messages(fed) == list(range(10))


async def test_only_one_feeder_works_on_a_run(fed: Ledger) -> None:
    assert not await fed.feeding.take_lease(RUN, "another")
    assert not await fed.feeding.feed(RUN, "another", [(3, 0)])
    await fed.feeding.drop_lease(RUN, "feeder")
    assert await fed.feeding.take_lease(RUN, "another")


async def test_a_second_delivery_of_a_claimed_job_is_dropped(fed: Ledger) -> None:
    await granted(fed, 0)
    assert await fed.claims.claim(job(0), "worker-1") == Dropped("busy")


async def test_a_claim_sent_again_after_a_lost_answer_is_the_same_claim(fed: Ledger) -> None:
    first = await granted(fed, 0, "worker-7")
    assert await granted(fed, 0, "worker-7") == first


async def test_exactly_one_of_many_claims_at_once_is_granted(fed: Ledger) -> None:
    outcomes = await asyncio.gather(*(fed.claims.claim(job(3), f"worker-{number}") for number in range(50)))
    assert sum(isinstance(outcome, Granted) for outcome in outcomes) == 1


async def test_a_settled_job_is_done_and_its_claim_and_checkpoint_are_gone(fed: Ledger) -> None:
    claim = await granted(fed, 0)
    assert await fed.checkpoints.append(claim, 0, b"{}")
    assert await fed.claims.settle(claim, "ok", Usage(10, 5, 2, 1))
    snapshot = await fed.progress.snapshot(RUN)
    assert (snapshot.ok, snapshot.pending, snapshot.in_flight, snapshot.input_tokens) == (1, 19, 0, 10)
    assert await fed.claims.claim(job(0), "worker-1") == Dropped("done")
    assert await fed.checkpoints.read(job(0)) == []
    assert await fed.claims.settle(claim, "ok", Usage(10, 5, 2, 1)), "sent again after a lost answer"
    assert (await fed.progress.snapshot(RUN)).ok == 1


async def test_a_job_that_was_never_fed_cannot_be_claimed(fed: Ledger) -> None:
    assert await fed.claims.claim(JobReference(RUN, 999), "worker-0") == Dropped("unknown")
    assert await fed.claims.claim(JobReference("another", 0), "worker-0") == Dropped("unknown")


async def expire(ledger: Ledger, index: int) -> None:
    await ledger.scripts.redis.zadd(f"parley:run:{RUN}:claims", {str(index): 0})


async def test_a_dead_workers_job_is_sent_again_and_the_old_claim_is_fenced(fed: Ledger) -> None:
    old = await granted(fed, 0)
    await take_all(fed)
    await expire(fed, 0)
    swept = await fed.sweeping.sweep(RUN, "sweeper")
    assert swept.expired == 1
    assert 0 in await messages(fed)
    new = await granted(fed, 0, "worker-9")
    assert (new.attempt, new.strikes) == (2, 1)
    assert not await fed.checkpoints.append(old, 0, b"{}")
    assert not await fed.claims.settle(old, "ok", Usage())
    assert (await fed.claims.renew(RUN, [old, new])).lost == {0}
    assert await fed.claims.settle(new, "ok", Usage())


async def test_a_claim_with_the_same_token_of_another_process_is_fenced(fed: Ledger) -> None:
    """A restart of Redis may forget the last claim; its token is then given a second time."""
    old = await granted(fed, 0, "worker-a")
    redis = fed.scripts.redis
    base = f"parley:run:{RUN}"
    await redis.zrem(f"{base}:claims", "0")
    await redis.hdel(f"{base}:owners", "0")
    await redis.hdel(f"{base}:tokens", "0")
    new = await granted(fed, 0, "worker-b")
    assert new.attempt == old.attempt
    assert not await fed.checkpoints.append(old, 0, b"{}")
    assert await fed.checkpoints.append(new, 0, b"{}")


async def test_a_job_whose_attempts_were_all_lost_is_given_out_for_burial_only(fed: Ledger) -> None:
    for attempt in range(3):
        await granted(fed, 0, f"worker-{attempt}")
        await expire(fed, 0)
        await fed.sweeping.sweep(RUN, "sweeper")
    outcome = await fed.claims.claim(job(0), "worker-9")
    assert isinstance(outcome, Exhausted)
    assert await fed.claims.settle(outcome.claim, "dead", Usage())
    assert (await fed.progress.snapshot(RUN)).dead == 1


async def test_a_handed_back_job_is_taken_next_and_costs_no_strike(fed: Ledger) -> None:
    await messages(fed)
    claim = await granted(fed, 5)
    await fed.claims.give_back(claim)
    assert (await messages(fed))[0] == 5
    again = await granted(fed, 5, "worker-1")
    assert (again.attempt, again.strikes) == (2, 0)


async def test_a_postponed_job_is_sent_again_when_it_is_due(fed: Ledger) -> None:
    claim = await granted(fed, 5)
    await take_all(fed)
    await fed.claims.give_back(claim, delay_seconds=3600, strikes=1)
    assert (await fed.sweeping.sweep(RUN, "sweeper")).due == 0
    assert (await fed.progress.snapshot(RUN)).later == 1
    await fed.scripts.redis.zadd(f"parley:run:{RUN}:later", {"5": 1})
    assert (await fed.sweeping.sweep(RUN, "sweeper")).due == 1
    assert 5 in await messages(fed)


async def test_a_message_lost_on_its_way_is_sent_again_and_a_waiting_one_is_not(fed: Ledger) -> None:
    redis = fed.scripts.redis
    assert (await fed.sweeping.sweep(RUN, "sweeper")).lost == 0, "all ten wait in the queue"
    await redis.rpop("conversations")  # job 0: taken by a worker that died before its claim
    assert (await fed.sweeping.sweep(RUN, "sweeper")).lost == 0, "sent in the same millisecond as those that wait"
    await take_all(fed)
    await granted(fed, 1)
    await asyncio.sleep(0.002)  # the grace of this ledger is zero: one millisecond has to pass
    assert (await fed.sweeping.sweep(RUN, "sweeper")).lost == 9
    assert sorted(await messages(fed)) == [0, *range(2, 10)]


async def test_a_fed_job_that_is_nowhere_any_more_is_sent_again_and_a_parked_one_is_not(fed: Ledger) -> None:
    await granted(fed, 10)
    await granted(fed, 11)
    assert isinstance(await fed.claims.claim(job(12), "worker-0"), Parked)
    await fed.scripts.redis.zrem(f"parley:run:{RUN}:queued:0", "4")
    assert (await fed.sweeping.sweep(RUN, "sweeper")).lost == 1
    assert sorted(await messages(fed)) == [0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 9]
    assert (await fed.sweeping.sweep(RUN, "sweeper")).lost == 0


async def test_one_process_sweeps_a_run_at_a_time(fed: Ledger) -> None:
    assert (await fed.sweeping.sweep(RUN, "first")).is_ours
    assert not (await fed.sweeping.sweep(RUN, "second")).is_ours


async def test_d68_a_namespace_never_has_more_holders_than_permits(fed: Ledger) -> None:
    first, second = await granted(fed, 10), await granted(fed, 11)
    assert isinstance(await fed.claims.claim(job(12), "worker-0"), Parked)
    assert isinstance(await fed.claims.claim(job(13), "worker-0"), Parked)
    standing = await fed.permits.statistics("hr_api")
    assert (standing.limit, standing.held, standing.parked) == (2, 2, 2)
    await take_all(fed, "ns.hr_api")
    await fed.claims.settle(first, "ok", Usage())
    assert await messages(fed, "ns.hr_api") == [12], "handed over at release, first in, first out"
    standing = await fed.permits.statistics("hr_api")
    assert (standing.held, standing.parked) == (2, 1)
    await take_all(fed, "ns.hr_api")
    third = await granted(fed, 12)
    assert isinstance(await fed.claims.claim(job(14), "worker-0"), Parked)
    await fed.claims.settle(second, "ok", Usage())
    await fed.claims.settle(third, "ok", Usage())
    assert await messages(fed, "ns.hr_api") == [14, 13], "each taken next: the later handed over, the earlier behind it"


async def test_a_newcomer_does_not_overtake_the_parked(fed: Ledger) -> None:
    first = await granted(fed, 10)
    await granted(fed, 11)
    assert isinstance(await fed.claims.claim(job(12), "worker-0"), Parked)
    await fed.claims.give_back(first, delay_seconds=3600)  # hands its permit to 12
    assert isinstance(await fed.claims.claim(job(13), "worker-0"), Parked)
    await granted(fed, 12)


async def test_a_dead_holders_permit_stays_with_its_job_until_the_next_attempt(fed: Ledger) -> None:
    await granted(fed, 10)
    await granted(fed, 11)
    assert isinstance(await fed.claims.claim(job(12), "worker-0"), Parked)
    await expire(fed, 10)
    await fed.sweeping.sweep(RUN, "sweeper")
    assert (await fed.permits.statistics("hr_api")).held == 2
    again = await granted(fed, 10, "worker-1")
    await fed.claims.settle(again, "ok", Usage())
    await granted(fed, 12)
    assert (await fed.permits.statistics("hr_api")).held == 2


async def test_a_permit_whose_holder_never_came_back_is_free_after_its_lease(fed: Ledger) -> None:
    await granted(fed, 10)
    await granted(fed, 11)
    assert isinstance(await fed.claims.claim(job(12), "worker-0"), Parked)
    await fed.scripts.redis.zadd("parley:ns:hr_api:held", {f"{RUN}/10": 1})
    assert (await fed.sweeping.sweep(RUN, "sweeper")).handed_over == 1
    await granted(fed, 12)


async def test_the_same_delta_sent_twice_is_kept_once(fed: Ledger) -> None:
    claim = await granted(fed, 0)
    assert await fed.checkpoints.append(claim, 0, b"a")
    assert await fed.checkpoints.append(claim, 0, b"a")
    assert await fed.checkpoints.append(claim, 1, b"b")
    assert await fed.checkpoints.read(job(0)) == [b"a", b"b"]


async def test_a_delta_that_would_leave_a_hole_is_refused(fed: Ledger) -> None:
    claim = await granted(fed, 0)
    assert not await fed.checkpoints.append(claim, 3, b"d")


async def test_a_cancelled_run_tells_running_jobs_at_the_next_beat_and_others_at_their_claim(fed: Ledger) -> None:
    claim = await granted(fed, 10)
    await fed.runs.request_cancellation(RUN)
    assert (await fed.claims.renew(RUN, [claim])).cancelled
    await granted(fed, 11)
    outcome = await fed.claims.claim(job(12), "worker-0")
    assert isinstance(outcome, Granted)
    assert outcome.cancelled, "no permit is needed to write a cancelled record"


async def test_a_run_is_registered_once_and_another_input_under_its_name_is_refused(ledger: Ledger) -> None:
    assert await ledger.runs.register(facts())
    assert not await ledger.runs.register(facts())
    with pytest.raises(RunConflict, match="--run-id"):
        await ledger.runs.register(facts(digest="another"))
    assert await ledger.runs.active() == [RUN]


async def test_a_ledger_that_lost_a_run_gets_its_bits_back_once(ledger: Ledger) -> None:
    from results.entries import Entry

    await ledger.runs.register(facts(jobs=2))
    entries = [Entry(0, 1, "ok", 10, 5, 3, 2), Entry(1, 1, "failed", 1, 1, 1, 0)]
    assert await ledger.runs.restore(RUN, entries) == 2
    assert await ledger.runs.restore(RUN, entries) == 0
    snapshot = await ledger.progress.snapshot(RUN)
    assert (snapshot.ok, snapshot.failed, snapshot.pending, snapshot.input_tokens) == (1, 1, 0, 11)
    assert snapshot.finished_at is not None
    assert await ledger.runs.active() == []


async def test_claims_of_one_dead_worker_end_at_once_and_others_live(fed: Ledger) -> None:
    await granted(fed, 0, "host-1-aa-0")
    await granted(fed, 1, "host-2-bb-0")
    assert await fed.claims.expire_all(RUN, nonce_prefix="host-1-aa-") == 1
    assert (await fed.sweeping.sweep(RUN, "sweeper")).expired == 1
    assert await fed.claims.claim(job(1), "worker-9") == Dropped("busy")


async def test_f41_a_run_that_was_killed_as_a_whole_runs_again_and_no_job_is_to_blame(fed: Ledger) -> None:
    for attempt in range(5):
        claim = await granted(fed, 0, f"host-{attempt}-aa-0")
        assert claim.strikes == 0
        await take_all(fed)
        assert await fed.claims.expire_all(RUN) == 1
        assert await messages(fed) == [0]
        assert not await fed.checkpoints.append(claim, 0, b"{}")


async def test_an_unknown_run_has_no_progress(ledger: Ledger) -> None:
    with pytest.raises(RunUnknown):
        await ledger.progress.snapshot("nobody")


async def test_calls_of_many_conversations_share_a_pipeline(fed: Ledger) -> None:
    before = fed.scripts.pipelines
    await asyncio.gather(*(fed.claims.claim(job(index), f"worker-{index}") for index in range(10)))
    assert fed.scripts.pipelines == before + 1


async def test_scripts_that_redis_forgot_are_loaded_again(fed: Ledger) -> None:
    await fed.scripts.redis.script_flush()
    await granted(fed, 0)


async def test_an_unreachable_broker_is_named_without_its_password() -> None:
    port = free_port()
    async with Ledger.open(f"redis://:geheim@127.0.0.1:{port}/0", patience_seconds=0.0) as ledger:
        with pytest.raises(BrokerUnreachable) as caught:
            await ledger.ping()
        with pytest.raises(BrokerUnreachable):
            await ledger.claims.claim(job(0), "worker-0")
    assert str(port) in str(caught.value)
    assert "geheim" not in str(caught.value)


async def test_calls_outlast_a_restart_of_redis(server: RedisServer, fed: Ledger) -> None:
    server.stop()
    claiming = asyncio.create_task(fed.claims.claim(job(0), "worker-0"))
    await asyncio.sleep(0)
    server.start()
    assert isinstance(await claiming, Granted)
