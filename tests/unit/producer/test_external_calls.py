"""Asking for what waits, sleeping until something does, and giving results that are checked before they are taken."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import BrokerUnreachable
from jobs.ledger import Ledger
from jobs.paused import answers_folder, read_answers, write_answers
from producer import external_calls
from producer.errors import CallUnknown, NoSuchJob, NotPaused, ResultInvalid
from producer.external_calls import Answers, ExternalCalls
from producer.run_address import FoundRun
from results.async_store import AsyncStore
from results.store import Store, open_store
from tests.support.redis_server import RedisServer, free_port, redis_server
from tests.support.scripted_model import ScriptedModel, calls
from tests.unit.workers.conftest import RUN, Bench, Benches
from tests.unit.workers.test_execute import put

RECIPE = """
model: {provider: offline, model: mock}
conversation: {external: {deadline_seconds: 3600}}
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
        - name: tell
          description: Asks for a long text.
          parameters: {type: object, properties: {}}
  namespaces: {desk: {defaults: {max_result_chars: 200}}}
"""
JOBS: list[Mapping[str, Any]] = [{"id": "first", "prompt": "1"}, {"prompt": "2"}, {"id": "42", "prompt": "3"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@dataclass
class Desk:
    """A run with a worker, and whoever answers."""

    bench: Bench
    calls: ExternalCalls
    model: ScriptedModel

    @property
    def store(self) -> Store:
        return open_store(self.bench.results)

    @property
    def ledger(self) -> Ledger:
        return self.bench.worker.ledger

    def another(self, ledger: Ledger | None = None) -> ExternalCalls:
        """Somebody else who answers."""
        return ExternalCalls(self.calls._found, ledger or self.ledger, self.calls._store)

    async def pause(self, index: int = 0, *names: str, tool: str = "ask") -> None:
        """Let a job ask for these calls."""
        arguments = {} if tool == "tell" else {"what": "x"}
        wanted = [(name, f"desk__{tool}", arguments | ({"what": name} if tool == "ask" else {})) for name in names]
        self.model.script.append(calls(*wanted))
        assert await self.bench.execute(index) == "paused"

    async def finish(self, index: int = 0) -> None:
        self.model.script.append({"role": "assistant", "content": "done"})
        assert await self.bench.execute(index) == "ok"

    def stored(self) -> list[dict[str, Any]]:
        """Every stored object of answers."""
        return [read_answers(self.store, each.key) for each in self.store.list(answers_folder(RUN))]


@asynccontextmanager
async def opened(server: RedisServer, folder: Path, jobs: int = 3) -> AsyncIterator[Desk]:
    async with Benches(server, folder).bench(RECIPE, JOBS[:jobs]) as bench:
        model = ScriptedModel([])
        await put(bench, model=model)
        store = open_store(bench.results)
        async with AsyncStore(store) as threads:
            yield Desk(bench, ExternalCalls(FoundRun(store, bench.manifest), bench.worker.ledger, threads), model)


@pytest.fixture
async def desk(server: RedisServer, tmp_path: Path) -> AsyncIterator[Desk]:
    async with opened(server, tmp_path) as running:
        yield running


@pytest.fixture
def only_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but a word of the ledger wakes who waits."""
    monkeypatch.setattr(external_calls, "_LOOK_SECONDS", 1000.0)


SAID = {"said": "yes"}


# Asking


async def test_s7_what_waits_is_told_as_structured_calls_in_the_order_of_the_jobs(desk: Desk) -> None:
    await desk.pause(1, "c")
    await desk.pause(0, "a", "b")
    first, second = await desk.calls.pending()
    assert (first.index, first.job_id, first.task_id) == (0, "first", f"{RUN}.000000")
    assert (second.index, second.job_id) == (1, f"{RUN}.000001")
    told = first.to_dict()["calls"][1]
    assert (told["call_id"], told["name"], told["arguments"]) == ("b", "desk::ask", {"what": "b"})
    assert told["ends_at"].endswith("+00:00")


async def test_a_call_that_is_answered_waits_no_more(desk: Desk) -> None:
    await desk.pause(0, "a", "b")
    await desk.calls.answer(0, {"a": SAID})
    (job,) = await desk.calls.pending()
    assert [call.call_id for call in job.calls] == ["b"]


async def test_wait_returns_what_waits_already_and_each_pause_once(desk: Desk) -> None:
    await desk.pause(0, "a")
    assert [job.index for job in await desk.calls.wait(10)] == [0]
    assert await desk.calls.wait(0.0) == []
    await desk.calls.answer(0, {"a": SAID})
    await desk.pause(0, "b")
    (again,) = await desk.calls.wait(10)
    assert [call.call_id for call in again.calls] == ["b"], "a later pause of the same job is another one"
    assert [job.index for job in await desk.another().wait(10)] == [0], "everybody is told"


async def test_wait_sleeps_until_the_ledger_tells_it(desk: Desk, only_told: None) -> None:
    waiting = asyncio.create_task(desk.calls.wait())
    while await desk.ledger.scripts.redis.pubsub_numsub("parley:paused:run") != [(b"parley:paused:run", 1)]:
        await asyncio.sleep(0.01)
    asked = desk.ledger.scripts.calls
    await asyncio.sleep(0.1)
    assert desk.ledger.scripts.calls == asked, "nothing is asked meanwhile"
    assert not waiting.done()
    await desk.pause(2, "a")
    (job,) = await waiting
    assert job.job_id == "42"


async def test_wait_ends_with_the_run(server: RedisServer, tmp_path: Path, only_told: None) -> None:
    async with opened(server, tmp_path, jobs=1) as desk:
        waiting = asyncio.create_task(desk.calls.wait())
        while await desk.ledger.scripts.redis.pubsub_numsub("parley:paused:run") != [(b"parley:paused:run", 1)]:
            await asyncio.sleep(0.01)
        await desk.finish()
        assert await waiting == []
        assert desk.calls.is_finished
        other = desk.another()
        assert (await other.wait(), other.is_finished) == ([], True)


async def test_c3_wait_goes_on_over_a_ledger_that_lost_the_run(desk: Desk) -> None:
    await desk.ledger.scripts.redis.flushall()
    assert await desk.calls.wait(0.05) == []
    assert not desk.calls.is_finished


# Answering


@pytest.mark.parametrize("job", [0, "0", "first", f"{RUN}.000000"])
async def test_a_job_is_named_by_index_task_id_or_id(desk: Desk, job: int | str) -> None:
    await desk.pause(0, "a")
    assert await desk.calls.answer(job, {"a": SAID}) == Answers(0, "resumed", {"a": "accepted"})


async def test_a_number_that_is_no_index_may_be_an_id(desk: Desk) -> None:
    await desk.pause(2, "a")
    assert (await desk.calls.answer("42", {"a": SAID})).accepted == ["a"]
    for nobody in (3, "3", "nobody", f"{RUN}.000009"):
        with pytest.raises(NoSuchJob, match="indices go from 0 to 2"):
            await desk.calls.answer(nobody, {"a": SAID})


async def test_s12_s8_results_and_errors_come_in_any_order_and_shape(desk: Desk) -> None:
    await desk.pause(0, "a", "b", "c")
    first = await desk.calls.answer(0, [{"call_id": "c", "error": "no"}, {"call_id": "a", "result": SAID}])
    assert (first.job, first.calls) == ("waiting", {"c": "accepted", "a": "accepted"})
    assert (await desk.calls.answer(0, {"b": SAID})).job == "resumed"
    await desk.finish()
    assert [entry["error"] for entry in desk.bench.records()[0]["tool_results"]] == [None, None, "no"]


async def test_s17_a_job_that_does_not_wait_takes_no_answer(desk: Desk) -> None:
    with pytest.raises(NotPaused, match="has not begun, or goes on"):
        await desk.calls.answer(0, {"a": SAID})
    await desk.pause(0, "a")
    await desk.calls.answer(0, {"a": SAID})
    with pytest.raises(NotPaused, match="does not wait"):
        await desk.calls.answer(0, {"z": SAID})
    await desk.finish()
    with pytest.raises(NotPaused, match="is finished: parley show"):
        await desk.calls.answer(0, {"a": SAID})
    assert len(desk.stored()) == 1


async def test_f39_twice_is_told_and_changes_nothing(desk: Desk) -> None:
    await desk.pause(0, "a", "b")
    await desk.calls.answer(0, {"a": SAID})
    again = await desk.calls.answer(0, {"a": {"said": "no"}, "b": SAID})
    assert again.accepted == ["b"]
    assert again.refused == {"a": "it is answered already, and the first answer stands"}
    assert desk.stored() == [{"a": {"result": SAID}}, {"b": {"result": SAID}}]


async def test_f39_late_is_told_and_leaves_nothing_behind(desk: Desk) -> None:
    await desk.pause(0, "a")
    await desk.ledger.scripts.redis.hset(f"parley:run:{RUN}:awaited:0", "c:a", "?1")
    answers = await desk.calls.answer(0, {"a": SAID})
    assert "comes too late" in answers.refused["a"]
    assert desk.stored() == [], "or it would win when the ledger is lost"


async def test_f39_of_twenty_callers_at_once_one_wins_and_only_its_answer_is_kept(desk: Desk) -> None:
    await desk.pause(0, "a")
    given = await asyncio.gather(
        *(desk.another().answer(0, {"a": {"said": str(who)}}) for who in range(20)), return_exceptions=True
    )
    winners = [who for who, each in enumerate(given) if isinstance(each, Answers) and each.accepted]
    assert len(winners) == 1
    assert desk.stored() == [{"a": {"result": {"said": str(winners[0])}}}]
    await desk.finish()
    assert desk.bench.records()[0]["tool_results"][0]["result"] == {"said": str(winners[0])}


async def test_f39_who_is_beaten_to_one_of_two_calls_keeps_the_other(desk: Desk, monkeypatch: Any, server: Any) -> None:
    await desk.pause(0, "a", "b")
    really = write_answers

    def beaten(store: Store, key: str, results: Any) -> None:
        with server.client() as client:
            client.hset(f"parley:run:{RUN}:awaited:0", "c:a", "=another")
        really(store, key, results)

    monkeypatch.setattr(external_calls, "write_answers", beaten)
    answers = await desk.calls.answer(0, {"a": SAID, "b": SAID})
    assert (answers.job, answers.accepted) == ("resumed", ["b"])
    assert desk.stored() == [{"b": {"result": SAID}}]


async def test_nothing_is_stored_while_no_ledger_can_be_reached(desk: Desk) -> None:
    await desk.pause(0, "a")
    async with Ledger.open(f"redis://127.0.0.1:{free_port()}/0", patience_seconds=0.1) as away:
        with pytest.raises(BrokerUnreachable):
            await desk.another(away).answer(0, {"a": SAID})
    assert desk.stored() == []
    assert (await desk.calls.answer(0, {"a": SAID})).accepted == ["a"]


# What strangers may try


async def test_sec_s20_a_guessed_or_swapped_call_is_refused_and_nothing_of_its_batch_is_taken(desk: Desk) -> None:
    await desk.pause(0, "a")
    await desk.pause(1, "b")
    for given in ({"guess": SAID}, {"b": SAID}, {"a": SAID, "b": SAID}):
        with pytest.raises(CallUnknown, match="it waits for a"):
            await desk.calls.answer(0, given)
    assert len(await desk.calls.pending()) == 2
    assert desk.stored() == []


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({}, "said"),
        ({"said": 3}, "result.said"),
        ("text", "result"),
        (None, "result"),
        ({"said": "x" * 10_000_000}, "4,000,000 are allowed"),
        ({"said": object()}, "not JSON"),
        ({"said": "\ud800"}, "not JSON"),
    ],
)
async def test_sec_s20_a_result_that_is_not_what_the_tool_gives_takes_nothing(
    desk: Desk, result: Any, told: str
) -> None:
    await desk.pause(0, "a", "b")
    with pytest.raises(ResultInvalid, match=told) as refused:
        await desk.calls.answer(0, {"b": SAID, "a": result})
    assert "call a of desk::ask" in str(refused.value)
    assert desk.stored() == []
    (job,) = await desk.calls.pending()
    assert len(job.calls) == 2


async def test_sec_s20_a_result_after_the_run_was_cancelled_is_late(desk: Desk) -> None:
    await desk.pause(0, "a")
    await desk.ledger.runs.request_cancellation(RUN)
    await desk.ledger.sweeping.sweep(RUN, "sweeper")
    assert (await desk.calls.answer(0, {"a": SAID})).calls == {"a": "late"}
    assert await desk.bench.execute(0) == "cancelled"
    with pytest.raises(NotPaused):
        await desk.calls.answer(0, {"a": SAID})


async def test_s14_a_result_over_max_result_chars_is_cut_and_says_so(desk: Desk) -> None:
    await desk.pause(0, "a", tool="tell")
    await desk.calls.answer(0, {"a": "x" * 5000})
    await desk.finish()
    (entry,) = desk.bench.records()[0]["tool_results"]
    assert len(entry["result"]) <= 200
    assert entry["metadata"].items() >= {"truncated": True, "original_chars": 5000, "external": True}.items()


async def test_s15_an_empty_result_is_a_result(desk: Desk) -> None:
    await desk.pause(0, "a", tool="tell")
    await desk.calls.answer(0, {"a": ""})
    await desk.finish()
    record = desk.bench.records()[0]
    assert record["tool_results"][0]["result"] == ""
    assert [message["role"] for message in record["messages"]] == ["user", "assistant", "tool", "assistant"]
