"""What a recipe says of a conversation's quality, seen through the whole worker: checks, candidates, users, prompts."""

from typing import Any

import pytest

from jobs.job import JobReference
from tests.unit.workers.conftest import RUN, Benches

TOOLS = """
tools:
  registry:
    - type: inline
      namespace: weather
      engine: local
      tools:
        - {name: get_weather, parameters: {type: object, properties: {city: {type: string}}, required: [city]}}
  engines: {local: {type: local, module: tests.support.weather_functions, inline: true}}
"""
MODEL = "model: {provider: offline, model: mock, offline: {turns: 3}}\n"
JOB = {"prompt": "How is the weather in Oslo?", "seed": 7}


async def record_of(benches: Benches, recipe: str, job: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
    async with benches.bench(recipe, [job or JOB]) as bench:
        outcome = await bench.execute()
    (record,) = bench.records()
    return outcome, record


async def test_a_conversation_that_passes_its_checks_is_ok(benches: Benches) -> None:
    checks = "checks: [{type: valid_calls}, {type: no_orphan_ids}, {type: length, min_tool_calls: 2}]\n"
    outcome, record = await record_of(benches, MODEL + checks + TOOLS)
    assert (outcome, record["status"], record["error"]) == ("ok", "ok", None)


async def test_one_that_does_not_is_a_failed_record_with_the_reason_and_its_messages(benches: Benches) -> None:
    outcome, record = await record_of(benches, MODEL + "checks: [{type: length, max_turns: 2}]\n" + TOOLS)
    assert outcome == "failed: rejected:length"
    assert record["error"] == {"type": "rejected:length", "message": "3 turns, at most 2 may be"}
    assert [message["role"] for message in record["messages"]][-1] == "assistant"


async def test_a_judges_points_are_kept_with_the_record(benches: Benches) -> None:
    checks = "checks: [{type: judge, rubric: Be kind., threshold: 1}]\n"
    outcome, record = await record_of(benches, MODEL + checks + TOOLS)
    assert outcome == "ok"
    assert 1 <= record["metadata"]["checks"]["judge"]["score"] <= 10
    assert record["usage"]["model_calls"] == 3  # the judge is not the assistant


async def test_a_judge_that_is_away_costs_an_attempt_and_no_turn(benches: Benches) -> None:
    judge = "{provider: openai, model: j, base_url: 'http://127.0.0.1:9', max_retries: 0}"
    recipe = MODEL + f"checks: [{{type: judge, rubric: x, model: {judge}}}]\n" + TOOLS
    async with benches.bench(recipe, [JOB]) as bench:
        assert await bench.execute() == "later: model_unavailable"
        assert await bench.worker.ledger.checkpoints.read(JobReference(RUN, 0)) != []


async def test_candidates_are_asked_for_and_counted(benches: Benches) -> None:
    alone = (await record_of(benches, MODEL + TOOLS))[1]
    benches.folder = benches.folder / "again"
    benches.folder.mkdir()
    recipe = MODEL + "conversation: {candidates: {n: 3}}\n" + TOOLS
    outcome, record = await record_of(benches, recipe)
    assert outcome == "ok"
    assert record["usage"]["model_calls"] == alone["usage"]["model_calls"]
    assert record["usage"]["output_tokens"] > 2 * alone["usage"]["output_tokens"]


async def test_a_record_says_which_of_several_models_made_it(benches: Benches) -> None:
    one, two = (f"{{provider: offline, model: {name}, offline: {{turns: 2}}}}" for name in ("one", "two"))
    recipe = f"model: {{routes: [{one}, {two}]}}\n{TOOLS}"
    async with benches.bench(recipe, [JOB] * 12) as bench:
        for index in range(12):
            assert await bench.execute(index) == "ok"
    assert {record["model"] for record in bench.records()} == {"one", "two"}


async def test_a_simulated_user_is_counted_apart(benches: Benches) -> None:
    user = "conversation: {user: {personas: [a farmer, a pilot], goal: 'Know {{ what }}.', opens: true}}\n"
    outcome, record = await record_of(benches, MODEL + user + TOOLS, {"variables": {"what": "the wind"}, "seed": 3})
    kept = record["metadata"]["simulated_user"]
    assert outcome == "ok"
    assert kept["persona"] in {"a farmer", "a pilot"}
    assert record["messages"][0] == {"role": "user", "content": "Hello! I have a request. Know the wind."}
    assert kept["turns"] == sum(message["role"] == "user" for message in record["messages"])
    assert kept["model_calls"] >= kept["turns"]
    assert record["usage"]["model_calls"] == sum(message["role"] == "assistant" for message in record["messages"])


@pytest.mark.parametrize("system", ["", "conversation: {system: You help.}\n"])
async def test_u18_prompts_and_checks_of_tools_reach_the_record(benches: Benches, system: str) -> None:
    tools = TOOLS + (
        "  namespaces: {weather: {tools: {get_weather: "
        "{system_prompt: Name the city., user_prompt: Be brief., evaluation_checks: [relevance]}}}}\n"
    )
    outcome, record = await record_of(benches, MODEL + system + tools)
    assert outcome == "ok"
    assert record["messages"][0]["content"] == ("You help.\n\n" if system else "") + "Name the city."
    assert record["messages"][1]["content"] == f"{JOB['prompt']}\n\nBe brief."
    assert record["metadata"]["evaluation_checks"] == ["relevance"]


async def test_u12_a_tool_that_takes_control_ends_the_job_with_its_result(benches: Benches) -> None:
    tools = TOOLS + "  namespaces: {weather: {tools: {get_weather: {takes_control: true}}}}\n"
    outcome, record = await record_of(benches, MODEL + tools)
    assert (outcome, record["usage"]["model_calls"]) == ("ok", 1)
    assert record["messages"][-1]["role"] == "tool"
    assert record["tool_results"][0]["metadata"]["took_control"] is True


async def test_nothing_of_all_this_is_there_unless_it_is_asked_for(benches: Benches) -> None:
    _, record = await record_of(benches, MODEL + TOOLS)
    assert record["metadata"] == {}
    assert record["run_id"] == RUN
