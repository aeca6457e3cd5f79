"""A conversation that waits for somebody outside: what it gives up, how it goes on, and what its record says."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest

from jobs.errors import InputCorrupt
from jobs.job import JobReference
from jobs.ledger.claims import Claim
from jobs.ledger.externals import Externals
from jobs.paused import new_answers_key, newest_paused, paused_key, read_paused, write_answers
from results.store import open_store
from tests.support import diary_functions
from tests.support.cluster import check_calls_are_answered
from tests.support.scripted_model import Line, ScriptedModel, calls, script
from tests.unit.workers.conftest import RUN, Bench, Benches
from tests.unit.workers.test_execute import Around, equipment_of, put

RECIPE = """
model: {provider: offline, model: mock}
conversation: {max_turns: 5, external: {deadline_seconds: 3600}}
tools:
  registry:
    - type: inline
      namespace: desk
      engine: external
      tools:
        - name: ask
          description: Asks a person.
          parameters: {type: object, properties: {what: {type: string}}, required: [what]}
          output_parameters: {type: object, properties: {said: {type: string}}, required: [said]}
    - type: inline
      namespace: diary
      engine: local
      tools:
        - {name: write, parameters: {type: object, properties: {line: {type: string}}, required: [line]}}
  engines:
    local: {type: local, module: tests.support.diary_functions, inline: true, setup: open_diary, teardown: close_diary}
  namespaces: {diary: {stateful: true, max_concurrency: 1}}
"""
JOB = {"id": "mine", "prompt": "Hello"}
BASE = f"parley:run:{RUN}"


@pytest.fixture(autouse=True)
def _new_diary() -> Iterator[None]:
    diary_functions.RUNS.clear()
    diary_functions.OPEN.clear()
    yield
    assert not diary_functions.OPEN, "every session is torn down"


def asking(*names: str) -> Any:
    return calls(*((name, "desk__ask", {"what": name}) for name in names))


def writing(name: str) -> Any:
    return calls((name, "diary__write", {"line": name}))


def mixed() -> Any:
    return calls(
        ("d1", "diary__write", {"line": "d1"}),
        ("a", "desk__ask", {"what": "a"}),
        ("d2", "diary__write", {"line": "d2"}),
    )


def says(text: str) -> Any:
    return {"role": "assistant", "content": text}


async def speaking(bench: Bench, *lines: Line) -> ScriptedModel:
    model = script(*lines)
    await put(bench, model=model)
    return model


async def answer(bench: Bench, index: int = 0, /, **results: Any) -> str:
    """Answer calls, as a caller does: first the object, then the ledger."""
    key = new_answers_key(RUN, index, 1.0)
    entries = {name: result if "error" in result else {"result": result} for name, result in results.items()}
    write_answers(open_store(bench.results), key, entries)
    return (await bench.worker.ledger.externals.answer(RUN, index, key, list(results))).job


async def check_nothing_is_held(bench: Bench) -> None:
    ledger = bench.worker.ledger
    snapshot = await ledger.progress.snapshot(RUN)
    assert (snapshot.in_flight, snapshot.window, snapshot.sessions_left) == (0, 0, 0)
    assert (await ledger.permits.statistics("diary")).held == 0
    assert not diary_functions.OPEN
    assert not await ledger.scripts.redis.keys(f"{BASE}:checkpoint:*")
    assert not await ledger.scripts.redis.keys(f"{BASE}:session:*")


class Dying(Externals):
    """The ledger's door in a process that dies before it says that it pauses."""

    async def pause(self, *_: Any) -> bool:
        raise asyncio.CancelledError


class TakenOver(Externals):
    """The ledger's door when another attempt claims the job just before."""

    async def pause(self, claim: Claim, state_key: str, calls: Any) -> bool:
        redis = self.scripts.redis
        await redis.hset(f"{BASE}:owners", "0", "2:another")
        return await Externals.pause(self, claim, state_key, calls)


async def test_s4_an_external_call_pauses_the_conversation_and_nothing_is_held(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        model = await speaking(bench, asking("a"))
        assert await bench.execute() == "paused"
        assert len(model.asked) == 1, "no further model call"
        await check_nothing_is_held(bench)
        snapshot = await bench.worker.ledger.progress.snapshot(RUN)
        assert (snapshot.paused, snapshot.pending) == (1, 1)
        assert await bench.execute() == "unknown", "a message that comes late starts nothing"
        (key,) = newest_paused(open_store(bench.results), RUN).values()
        job = read_paused(open_store(bench.results), key)
    assert key == paused_key(RUN, 0, 1)
    assert (job.job_id, job.attempt) == ("mine", 1)
    assert [call.to_dict() for call in job.calls] == [
        {"call_id": "a", "name": "desk::ask", "arguments": {"what": "a"}, "seconds": 3600.0}
    ]
    assert bench.records() == []


async def test_s5_engine_calls_of_a_mixed_batch_run_once_and_all_are_answered_in_call_order(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        model = await speaking(bench, mixed(), writing("d3"), says("done"))
        assert await bench.execute() == "paused"
        assert diary_functions.RUNS == ["d1", "d2"]
        assert await answer(bench, a={"said": "yes"}) == "resumed"
        assert await bench.execute() == "ok"
    assert not model.script
    (record,) = bench.records()
    assert diary_functions.RUNS == ["d1", "d2", "d3"]
    check_calls_are_answered(record["messages"])
    told = [(m["tool_call_id"], orjson.loads(m["content"])) for m in record["messages"] if m["role"] == "tool"]
    assert told == [
        ("d1", {"lines": ["d1"]}),
        ("a", {"said": "yes"}),
        ("d2", {"lines": ["d1", "d2"]}),
        ("d3", {"lines": ["d1", "d2", "d3"]}),  # the session's scratch went on
    ]
    (from_outside,) = [entry for entry in record["tool_results"] if entry["call_id"] == "a"]
    assert (from_outside["name"], from_outside["error"], from_outside["metadata"]["external"]) == (
        "desk::ask",
        None,
        True,
    )
    assert record["usage"]["tool_calls"] == 4


async def test_s9_a_conversation_pauses_three_times_and_completes(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await speaking(bench, asking("a"), asking("b"), asking("c"), says("done"))
        for attempt, name in enumerate("abc", start=1):
            assert await bench.execute() == "paused"
            assert newest_paused(open_store(bench.results), RUN) == {0: paused_key(RUN, 0, attempt)}
            assert await answer(bench, 0, **{name: {"said": name}}) == "resumed"
        assert await bench.execute() == "ok"
        assert not await bench.worker.ledger.scripts.redis.exists(f"{BASE}:awaited:0")
    (record,) = bench.records()
    assert (record["attempt"], record["usage"]["model_calls"]) == (4, 4)
    assert [entry["result"]["said"] for entry in record["tool_results"]] == ["a", "b", "c"]


async def test_s10_the_limit_of_turns_holds_across_pauses(benches: Benches) -> None:
    async with benches.bench(RECIPE.replace("max_turns: 5", "max_turns: 2"), [JOB]) as bench:
        model = await speaking(bench, asking("a"), asking("b"))
        assert await bench.execute() == "paused"
        await answer(bench, a={"said": "yes"})
        assert await bench.execute() == "failed: max_turns"
    assert len(model.asked) == 2


async def test_s11_s13_at_its_limit_a_conversation_fails_and_waits_for_nobody(benches: Benches) -> None:
    async with benches.bench(RECIPE.replace("max_turns: 5", "max_turns: 1"), [JOB]) as bench:
        await speaking(bench, asking("a"))
        assert await bench.execute() == "failed: max_turns"
    (record,) = bench.records()
    assert record["tool_results"][0]["error_type"] == "limit"
    check_calls_are_answered(record["messages"])


async def test_s12_an_error_from_outside_is_told_to_the_model(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        model = await speaking(bench, asking("a", "b"), says("sorry"))
        await bench.execute()
        await answer(bench, a={"error": "nobody is at the desk"}, b={"said": "yes"})
        assert await bench.execute() == "ok"
    told = {m["tool_call_id"]: m["content"] for m in model.asked[-1].messages if m["role"] == "tool"}
    assert "nobody is at the desk" in told["a"]
    first, second = bench.records()[0]["tool_results"]
    assert (first["error"], first["error_type"], first["result"]) == ("nobody is at the desk", "external", None)
    assert second["error"] is None


async def test_s8_two_calls_of_one_tool_get_their_own_results(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await speaking(bench, asking("a", "b"), says("done"))
        await bench.execute()
        assert await answer(bench, b={"said": "to b"}) == "waiting"
        assert await answer(bench, a={"said": "to a"}) == "resumed"
        assert await bench.execute() == "ok"
    assert [entry["result"]["said"] for entry in bench.records()[0]["tool_results"]] == ["to a", "to b"]


async def test_u9_equal_calls_are_asked_for_once_and_share_the_answer(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        same = calls(("a", "desk__ask", {"what": "x"}), ("b", "desk__ask", {"what": "x"}))
        await speaking(bench, same, says("done"))
        await bench.execute()
        awaited = await bench.worker.ledger.externals.awaited(JobReference(RUN, 0))
        assert awaited is not None
        assert list(awaited.calls) == ["a"]
        await answer(bench, a={"said": "yes"})
        assert await bench.execute() == "ok"
    check_calls_are_answered(bench.records()[0]["messages"])


async def test_s6_more_external_calls_than_a_turn_may_make_are_answered_with_the_limit(benches: Benches) -> None:
    recipe = RECIPE.replace("max_turns: 5", "max_turns: 5, max_tool_calls: 2")
    async with benches.bench(recipe, [JOB]) as bench:
        await speaking(bench, asking("a", "b", "c"), says("done"))
        await bench.execute()
        assert await answer(bench, a={"said": "1"}, b={"said": "2"}) == "resumed"
        assert await bench.execute() == "ok"
    assert [entry["error_type"] for entry in bench.records()[0]["tool_results"]].count("limit") == 1


async def test_s16_without_external_tools_nothing_ever_pauses(benches: Benches) -> None:
    recipe = RECIPE.replace("engine: external", "engine: local").replace("name: ask", "name: write")
    recipe = recipe.replace("{what: {type: string}}, required: [what]", "{line: {type: string}}, required: [line]")
    recipe = (
        recipe[: recipe.index("          output_parameters")]
        + recipe[recipe.index("    - type: inline\n      namespace: diary") :]
    )
    async with benches.bench(recipe, [JOB]) as bench:
        await speaking(bench, writing("a"), says("done"))
        assert await bench.execute() == "ok"


async def test_an_external_call_with_wrong_arguments_is_refused_and_pauses_nothing(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await speaking(bench, calls(("a", "desk__ask", {"how": 1})), says("done"))
        assert await bench.execute() == "ok"
    (entry,) = bench.records()[0]["tool_results"]
    assert entry["error_type"] == "validation"


async def test_f39_a_call_whose_time_is_over_becomes_a_timeout_that_the_model_is_told(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await speaking(bench, asking("a", "b"), says("done"))
        await bench.execute()
        await answer(bench, b={"said": "in time"})
        redis = bench.worker.ledger.scripts.redis
        await redis.hset(f"{BASE}:awaited:0", "c:a", "?1")
        await redis.zadd(f"{BASE}:deadlines", {"0": 1})
        await bench.worker.ledger.sweeping.sweep(RUN, "sweeper")
        assert await bench.execute() == "ok"
    late, in_time = bench.records()[0]["tool_results"]
    assert (late["error"], late["error_type"]) == ("no answer came from outside within 3600 seconds", "timeout")
    assert in_time["result"] == {"said": "in time"}


async def test_s18_another_worker_goes_on_where_the_first_one_paused(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await speaking(bench, mixed())
        assert await bench.execute() == "paused"
        await answer(bench, a={"said": "yes"})
        async with benches.another(bench, environment={}) as other:
            model = await speaking(other, writing("d3"), says("done"))
            assert await other.execute() == "ok"
    assert [m["role"] for m in model.asked[0].messages] == ["user", "assistant", "tool", "tool", "tool"]
    assert bench.records()[0]["tool_results"][-1]["result"] == {"lines": ["d1", "d2", "d3"]}


async def test_c10_a_crash_between_the_stored_state_and_the_ledger_pauses_again(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await speaking(bench, mixed())
        ledger = bench.worker.ledger
        bench.worker.ledger = replace(ledger, externals=Dying(ledger.scripts))
        with pytest.raises(asyncio.CancelledError):
            await bench.execute()
        bench.worker.ledger = ledger
        assert await bench.execute() == "paused", "from the checkpoint: the model is not asked again"
        assert diary_functions.RUNS == ["d1", "d2"], "and no call runs again"
        await check_nothing_is_held(bench)
        assert sorted(stored.key for stored in open_store(bench.results).list(f"{RUN}/paused")) == [
            paused_key(RUN, 0, 1),
            paused_key(RUN, 0, 2),
        ]


async def test_c10_a_crash_after_the_resume_uses_the_same_answers_again(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await speaking(bench, asking("a"))
        await bench.execute()
        await answer(bench, a={"said": "yes"})

        async def dies() -> None:
            raise asyncio.CancelledError

        await put(bench, model=Around((await equipment_of(bench)).model, dies))
        with pytest.raises(asyncio.CancelledError):
            await bench.execute()
        await speaking(bench, says("done"))
        assert await bench.execute() == "ok"
    assert bench.records()[0]["tool_results"][0]["result"] == {"said": "yes"}


async def test_c10_a_crash_later_on_goes_on_from_the_checkpoint_and_not_from_the_pause(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await speaking(bench, mixed())
        await bench.execute()
        await answer(bench, a={"said": "yes"})

        def dies(_: Any) -> Any:
            raise asyncio.CancelledError

        await speaking(bench, writing("d3"), dies)
        with pytest.raises(asyncio.CancelledError):
            await bench.execute()
        model = await speaking(bench, says("done"))
        assert await bench.execute() == "ok"
    assert len(model.asked) == 1
    assert diary_functions.RUNS == ["d1", "d2", "d3"]
    assert [m["role"] for m in bench.records()[0]["messages"]] == [
        "user", "assistant", "tool", "tool", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip


async def test_s8_an_answer_that_was_not_taken_is_not_used_though_it_is_stored(benches: Benches) -> None:
    names = "abcdefgh"
    async with benches.bench(RECIPE, [JOB]) as bench:
        await speaking(bench, asking(*names), says("done"))
        await bench.execute()
        for name in names:  # callers that died before they took back what they were too late for
            key = new_answers_key(RUN, 0, 1.0)
            stored = {each: {"result": {"said": each if each == name else "beaten"}} for each in names}
            write_answers(open_store(bench.results), key, stored)
            await bench.worker.ledger.externals.answer(RUN, 0, key, [name])
        assert await bench.execute() == "ok"
    assert [entry["result"]["said"] for entry in bench.records()[0]["tool_results"]] == list(names)


async def test_f12_a_lost_claim_pauses_nothing(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await speaking(bench, asking("a"))
        ledger = bench.worker.ledger
        bench.worker.ledger = replace(ledger, externals=TakenOver(ledger.scripts))
        assert await bench.execute() == "lost"
        assert await ledger.externals.paused(RUN) == []


async def test_a_paused_job_of_a_cancelled_run_gets_a_cancelled_record_with_what_was_said(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await speaking(bench, asking("a"))
        await bench.execute()
        await bench.worker.ledger.runs.request_cancellation(RUN)
        await bench.worker.ledger.sweeping.sweep(RUN, "sweeper")
        assert await bench.execute() == "cancelled"
        await check_nothing_is_held(bench)
    (record,) = bench.records()
    assert record["status"] == "cancelled"
    assert [m["role"] for m in record["messages"]][:2] == ["user", "assistant"]


async def test_a_stored_state_that_is_damaged_postpones_the_job_and_says_which(benches: Benches) -> None:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await speaking(bench, asking("a"))
        await bench.execute()
        open_store(bench.results).put(paused_key(RUN, 0, 1), b"garbage")
        with pytest.raises(InputCorrupt, match="paused/000000000-000001"):
            read_paused(open_store(bench.results), paused_key(RUN, 0, 1))
        await answer(bench, a={"said": "yes"})
        assert await bench.execute() == "later: input"


async def test_s1_a_call_that_has_to_be_confirmed_is_answered_from_outside_and_never_run(benches: Benches) -> None:
    rule = "{tool: 'diary::write', arguments: {type: object, properties: {line: {const: secret}}, required: [line]}}"
    recipe = RECIPE + f"  permissions: {{confirm: [{rule}]}}\n"
    async with benches.bench(recipe, [JOB]) as bench:
        await speaking(bench, writing("plain"), writing("secret"), writing("later"), says("done"))
        assert await bench.execute() == "paused"
        await answer(bench, secret={"error": "refused by a person"})
        assert await bench.execute() == "ok"
    assert diary_functions.RUNS == ["plain", "later"]
    _, secret, later = bench.records()[0]["tool_results"]
    assert (secret["error"], later["result"]) == ("refused by a person", {"lines": ["plain", "later"]})
