"""A forked job on a worker: it goes on where its parent was, on a session that is as that one's was."""

from collections.abc import Iterator
from typing import Any

import pytest

from conversations.errors import ModelUnavailable
from conversations.messages import assistant
from jobs.job import JobLine
from producer.fork_point import forked_line
from results.record import RecordModel
from tests.support import notebook_functions
from tests.support.scripted_model import Line, ScriptedModel, calls, script
from tests.unit.workers.conftest import Bench, Benches
from tests.unit.workers.test_execute import put

RECIPE = """
model: {provider: offline, model: mock}
conversation: {system: "You keep {{ what }}.", max_turns: 4}
tools:
  registry:
    - type: inline
      namespace: n
      engine: here
      tools:
        - {name: note, parameters: {type: object, properties: {text: {type: string}}, required: [text]}}
        - {name: read}
  engines: {here: {type: local, module: tests.support.notebook_functions}}
"""
JOB = {"id": "mine", "prompt": "Note a.", "variables": {"what": "notes"}, "metadata": {"kind": "test"}, "seed": 7}
NOTE_A = calls(("c1", "n__note", {"text": "a"}))
NOTE_B = calls(("c2", "n__note", {"text": "b"}))
READ = calls(("c3", "n__read", {}))


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    notebook_functions.RUNS.clear()
    yield
    notebook_functions.RUNS.clear()


async def played(bench: Bench, *lines: Line, index: int = 0) -> ScriptedModel:
    model = script(*lines)
    await put(bench, model=model)
    assert await bench.execute(index) == "ok"
    return model


async def parent(benches: Benches) -> dict[str, Any]:
    async with benches.bench(RECIPE, [JOB]) as bench:
        await played(bench, NOTE_A, NOTE_B, READ, assistant("a and b"))
        (record,) = bench.records()
    notebook_functions.RUNS.clear()
    benches.folder /= "forks"
    benches.folder.mkdir()
    return record


def fork(record: dict[str, Any], turn: int, seed: int = 1) -> dict[str, Any]:
    return forked_line(record, JobLine.model_validate(JOB), turn=turn, seed=seed)


async def test_e17_a_fork_goes_on_from_the_messages_and_the_session_of_its_turn(benches: Benches) -> None:
    record = await parent(benches)
    async with benches.bench(RECIPE, [fork(record, 1)]) as bench:
        model = await played(bench, READ, assistant("only a"))
        forked = bench.records()[-1]
    RecordModel.model_validate(forked)
    assert model.asked[0].messages == record["messages"][:4]
    assert forked["messages"][:4] == record["messages"][:4]
    assert forked["messages"][-1] == assistant("only a")
    assert [entry["result"] for entry in forked["tool_results"]] == [record["tool_results"][0]["result"], ["a"]]
    assert notebook_functions.RUNS == ["a"], "the kept call was made once, for the new session"
    assert (forked["seed"], forked["metadata"]["kind"], forked["metadata"]["fork"]["turn"]) == (7, "test", 1)


async def test_a_fork_counts_what_it_used_itself(benches: Benches) -> None:
    record = await parent(benches)
    async with benches.bench(RECIPE, [fork(record, 2)]) as bench:
        await played(bench, READ, assistant("both"))
        snapshot = await bench.worker.ledger.progress.snapshot("run")
        forked = bench.records()[-1]
    assert forked["usage"] == {"input_tokens": 20, "output_tokens": 10, "model_calls": 2, "tool_calls": 1}
    assert (snapshot.model_calls, snapshot.tool_calls) == (2, 1)


async def test_what_sub_agents_used_before_the_fork_is_the_parents(benches: Benches) -> None:
    record = await parent(benches)
    usage = {"input_tokens": 5, "output_tokens": 5, "model_calls": 1, "tool_calls": 0}
    line = fork(record, 1)
    line["history"]["tool_results"][0]["metadata"] = {"sub_agent": usage}
    async with benches.bench(RECIPE, [line]) as bench:
        await played(bench, assistant("x"))
        assert "sub_agents" not in bench.records()[-1]["metadata"]


async def test_s10_the_turns_before_the_fork_count_against_the_limit(benches: Benches) -> None:
    record = await parent(benches)
    async with benches.bench(RECIPE, [fork(record, 3)]) as bench:
        await put(bench, model=script(NOTE_B))
        assert await bench.execute() == "failed: max_turns"
        assert bench.records()[-1]["usage"]["model_calls"] == 1


async def test_forks_of_one_turn_ask_with_seeds_of_their_own(benches: Benches) -> None:
    record = await parent(benches)
    async with benches.bench(RECIPE, [fork(record, 1, seed) for seed in (1, 2)]) as bench:
        first = await played(bench, assistant("x"))
        second = await played(bench, assistant("y"), index=1)
    assert first.asked[0].seed != second.asked[0].seed


async def test_u6_a_choice_is_forced_only_where_no_turn_is_kept(benches: Benches) -> None:
    record = await parent(benches)
    forced = {"tool_choice": "n::read"}
    async with benches.bench(RECIPE, [fork(record, 0) | forced, fork(record, 1) | forced]) as bench:
        first = await played(bench, READ, assistant("x"))
        second = await played(bench, READ, assistant("x"), index=1)
    assert first.asked[0].tool_choice == {"type": "function", "function": {"name": "n__read"}}
    assert second.asked[0].tool_choice is None


async def test_a_fork_that_is_taken_up_has_its_sessions_scratch_and_makes_nothing_twice(benches: Benches) -> None:
    record = await parent(benches)
    async with benches.bench(RECIPE, [fork(record, 1)]) as bench:
        await put(bench, model=script(NOTE_B, ModelUnavailable("away")))
        assert await bench.execute() == "later: model_unavailable"
        await played(bench, READ, assistant("both"))
        forked = bench.records()[-1]
    assert forked["tool_results"][-1]["result"] == ["a", "b"]
    assert notebook_functions.RUNS == ["a", "b"]


async def test_a_fork_that_never_had_a_checkpoint_begins_again(benches: Benches) -> None:
    record = await parent(benches)
    async with benches.bench(RECIPE, [fork(record, 1)]) as bench:
        await put(bench, model=script(ModelUnavailable("away")))
        assert await bench.execute() == "later: model_unavailable"
        await played(bench, READ, assistant("a"))
        forked = bench.records()[-1]
    assert forked["tool_results"][-1]["result"] == ["a"]
    assert notebook_functions.RUNS == ["a", "a"], "once for each session"


async def test_a_kept_call_that_cannot_be_made_again_fails_the_fork_with_a_reason(benches: Benches) -> None:
    record = await parent(benches)
    line = fork(record, 1)
    line["messages"][2]["tool_calls"][0]["function"]["arguments"] = '{"text": "fail now"}'
    recipe = RECIPE + "limits: {max_attempts: 1}\n"
    async with benches.bench(recipe, [line]) as bench:
        assert (await bench.execute()).startswith("failed: ")
        forked = bench.records()[-1]
    assert "n::note cannot be run again for the turns that are kept" in forked["error"]["message"]
    assert forked["messages"] == line["messages"]


USER_RECIPE = RECIPE.replace(
    "max_turns: 4}",
    "max_turns: 9, user: {personas: [calm, curt, kind], max_user_turns: 2, tools: ['n::note']}}",
)


async def test_a_simulated_user_stays_who_it_was_and_knows_what_it_did(benches: Benches) -> None:
    said: tuple[Line, ...] = (calls(("u1", "n__note", {"text": "mine"})), assistant("and then?"), assistant("and now?"))
    async with benches.bench(USER_RECIPE, [JOB]) as bench:
        await put(bench, user_model=script(*said))
        await played(bench, READ, assistant("first"), assistant("second"), assistant("third"))
        (record,) = bench.records()
    known = record["metadata"]["simulated_user"]
    assert (known["turns"], len(known["asides"])) == (2, 1)
    benches.folder /= "forks"
    benches.folder.mkdir()
    notebook_functions.RUNS.clear()
    line = fork(record, 3)
    assert line["messages"][-1] == {"role": "user", "content": "and now?"}
    early, late = fork(record, 2), line
    async with benches.bench(USER_RECIPE, [early, late]) as bench:
        user = script(assistant("well?"))
        await put(bench, user_model=user)
        model = script(READ_AGAIN, assistant("second again"), assistant("last"))
        await put(bench, model=model, user_model=user)
        assert await bench.execute(0) == "ok"
        assert not user.script, "it had one turn left"
        await put(bench, model=script(assistant("third again")), user_model=script())
        assert await bench.execute(1) == "ok", "it had none left"
        first, second = bench.records()[-2:]
    assert {each["metadata"]["simulated_user"]["persona"] for each in (first, second)} == {known["persona"]}
    assert first["tool_results"][-1]["result"] == ["mine"], "what the user wrote is in the session"
    assert [each["metadata"]["simulated_user"]["turns"] for each in (first, second)] == [2, 2]


READ_AGAIN = calls(("c9", "n__read", {}))
