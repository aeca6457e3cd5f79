"""Another recipe as a tool: its whole conversation runs inside the job, and the record tells what it used."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.workers.conftest import Bench, Benches
from tests.unit.workers.test_execute import Around, equipment_of

RESEARCHER = """
model: {provider: offline, model: nested, offline: {turns: 3}}
conversation: {system: "You research {{ task }}."}
tools:
  registry:
    - type: inline
      namespace: weather
      engine: local
      tools:
        - {name: get_weather, parameters: {type: object, properties: {city: {type: string}}, required: [city]}}
  engines: {local: {type: local, module: tests.support.weather_functions, inline: true}}
"""
RECIPE = """
model: {provider: offline, model: mock, offline: {turns: 2}}
tools:
  registry:
    - {type: recipe, path: researcher.yaml, name: research, description: Finds out., namespace: agents, engine: agents}
  engines: {agents: {type: recipe}}
"""
JOB: Mapping[str, Any] = {"id": "mine", "prompt": "Find out about Lisbon", "seed": 7}


def write(benches: Benches, **recipes: str) -> None:
    for name, text in recipes.items():
        (benches.folder / f"{name}.yaml").write_text(text)


async def test_u1_a_call_of_a_recipe_is_a_whole_conversation_whose_last_text_is_the_result(benches: Benches) -> None:
    write(benches, researcher=RESEARCHER)
    async with benches.bench(RECIPE, [JOB]) as bench:
        assert await bench.execute() == "ok"
    (record,) = bench.records()
    (result,) = record["tool_results"]
    assert result["name"] == "agents::research"
    assert isinstance(result["result"], str)
    assert result["result"]
    used = {key: value for key, value in result["metadata"]["sub_agent"].items() if "tokens" not in key}
    assert used == {"model_calls": 3, "tool_calls": 2}
    assert record["metadata"]["sub_agents"]["agents::research"].items() >= {"calls": 1, "failed": 0, **used}.items()
    assert record["usage"]["model_calls"] == 2


async def test_u12_a_sub_agent_may_take_the_conversation_over(benches: Benches) -> None:
    write(benches, researcher=RESEARCHER)
    taking = RECIPE.replace("engine: agents}", "engine: agents, takes_control: true}")
    async with benches.bench(taking, [JOB]) as bench:
        assert await bench.execute() == "ok"
    (record,) = bench.records()
    assert [message["role"] for message in record["messages"]] == ["user", "assistant", "tool"]
    assert record["tool_results"][0]["metadata"]["took_control"] is True


async def test_u17_a_sub_agents_results_say_where_they_come_from(benches: Benches) -> None:
    write(benches, researcher=RESEARCHER)
    async with benches.bench(RECIPE, [JOB]) as bench:
        (tool,) = (await equipment_of(bench)).selector.select(None).tools
    assert tool.metadata["source"] == "recipe"


async def test_a_sub_agent_that_fails_is_an_error_result_and_the_conversation_goes_on(benches: Benches) -> None:
    write(benches, researcher=RESEARCHER.replace("turns: 3", "turns: 30"))
    async with benches.bench(RECIPE, [JOB]) as bench:
        assert await bench.execute() == "ok"
    (record,) = bench.records()
    (result,) = record["tool_results"]
    assert (result["result"], result["error_type"]) == (None, "limit")
    assert "the sub-agent ended with max_turns" in result["error"]
    used = record["metadata"]["sub_agents"]["agents::research"]
    assert (used["calls"], used["failed"], used["model_calls"]) == (1, 1, 20)


async def test_a_result_of_a_form_is_json(benches: Benches) -> None:
    write(benches, researcher=RESEARCHER)
    shape = "{type: object, properties: {city: {type: string}, people: {type: integer}}, required: [city, people]}"
    formed = RECIPE.replace("engine: agents}", f"engine: agents, output_parameters: {shape}}}")
    async with benches.bench(formed, [JOB]) as bench:
        assert await bench.execute() == "ok"
    ((result,),) = (record["tool_results"] for record in bench.records())
    assert result["error"] is None
    assert isinstance(result["result"]["people"], int)


async def test_what_deeper_sub_agents_used_counts_for_those_above(benches: Benches) -> None:
    write(benches, researcher=RECIPE.replace("researcher", "deepest"), deepest=RESEARCHER)
    async with benches.bench(RECIPE, [JOB]) as bench:
        assert await bench.execute() == "ok"
    (record,) = bench.records()
    used = record["metadata"]["sub_agents"]["agents::research"]
    assert (used["model_calls"], used["tool_calls"]) == (2 + 3, 1 + 2)


async def test_messages_of_a_sub_agent_are_kept_where_the_entry_says_so(benches: Benches) -> None:
    write(benches, researcher=RESEARCHER)
    async with benches.bench(RECIPE.replace("engine: agents}", "engine: agents, keep_messages: true}"), [JOB]) as bench:
        await bench.execute()
    (record,) = bench.records()
    kept = record["tool_results"][0]["metadata"]["sub_agent"]["messages"]
    assert [message["role"] for message in kept][:3] == ["system", "user", "assistant"]
    assert kept[-1]["content"] == record["tool_results"][0]["result"]


async def test_sec_s19_tokens_of_sub_agents_count_for_the_jobs_budget(benches: Benches) -> None:
    write(benches, researcher=RESEARCHER)
    async with benches.bench(RECIPE, [JOB]) as bench:
        assert await bench.execute() == "ok"
    (record,) = bench.records()
    own = record["usage"]["input_tokens"] + record["usage"]["output_tokens"]
    shutil.rmtree(benches.folder / "results")
    async with benches.bench(f"{RECIPE}limits: {{max_total_tokens: {own + 1}}}\n", [JOB]) as bench:
        assert await bench.execute() == "failed: budget"


async def test_the_same_job_has_the_same_sub_agent_on_any_worker(benches: Benches) -> None:
    write(benches, researcher=RESEARCHER)
    async with benches.bench(RECIPE, [JOB, {**JOB, "id": "again"}]) as bench:
        assert [await bench.execute(0), await bench.execute(1)] == ["ok", "ok"]
    first, second = (record["tool_results"][0] for record in bench.records())
    assert first["result"] == second["result"]


async def test_nothing_of_a_sub_agent_is_open_after_its_call_was_given_up(
    benches: Benches, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = RESEARCHER.replace("{turns: 3}", "{turns: 3, latency_ms: 60000}")
    write(benches, researcher=slow)
    hasty = RECIPE.replace("engine: agents}", "engine: agents, timeout_seconds: 0.2}")
    async with benches.bench(hasty, [JOB]) as bench:
        opened, closed = await noted_sessions(bench, monkeypatch)
        assert await bench.execute() == "ok"
    (record,) = bench.records()
    assert record["tool_results"][0]["error_type"] == "timeout"
    assert len(opened) == 1
    assert closed == opened


async def noted_sessions(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """Note which sessions the sub-agent's engine is asked to set up and to tear down."""
    outer: Any = (await equipment_of(bench)).engine
    (agent,) = outer._engines["agents"]._agents.values()
    opened, closed = [], []
    setup, teardown = agent.engine.setup, agent.engine.teardown

    async def noted_setup(session_id: str, **more: Any) -> None:
        opened.append(session_id)
        await setup(session_id, **more)

    async def noted_teardown(session_id: str, **more: Any) -> None:
        await teardown(session_id, **more)
        closed.append(session_id)

    monkeypatch.setattr(agent.engine, "setup", noted_setup)
    monkeypatch.setattr(agent.engine, "teardown", noted_teardown)
    return opened, closed


async def test_a_lost_claim_stops_a_sub_agent_before_its_next_call(benches: Benches) -> None:
    write(benches, researcher=RESEARCHER)
    async with benches.bench(RECIPE, [JOB]) as bench:
        outer: Any = (await equipment_of(bench)).engine
        (key,) = outer._engines["agents"]._agents
        agent = outer._engines["agents"]._agents[key]
        asked = 0

        async def lose_the_claim() -> None:
            nonlocal asked
            asked += 1
            (lease,) = bench.worker.heartbeat.leases["run"].values()
            lease.taken_away = True

        outer._engines["agents"]._agents[key] = replace(agent, model=Around(agent.model, lose_the_claim))
        assert await bench.execute() == "lost"
    assert asked == 1
    assert bench.records() == []
