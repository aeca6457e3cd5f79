"""Whatever a model server says, a job becomes a record: never a traceback, never a job without an end (F20)."""

import asyncio
from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from typing import Any

import orjson
import structlog

from results.record import RecordModel
from tests.support.malformed_answers import ANTHROPIC, END, OPENAI, STREAMED, Case, events, piece, saying, spoken, text
from tests.support.raw_server import Asked, RawServer, answer, raw_server
from tests.unit.workers.conftest import Benches

RECIPE = """
model: {provider: PROVIDER, model: m, base_url: URL, max_retries: 0, stream: STREAM}
limits: {max_attempts: 1}
tools:
  registry:
    - type: inline
      namespace: w
      engine: local
      tools:
        - name: get
          parameters: {type: object, properties: {city: {type: string}}, required: [city], additionalProperties: false}
  engines: {local: {type: local, module: tests.support.weather_functions, functions: {get: get_weather}, inline: true}}
"""


async def outcomes_of(
    benches: Benches, cases: Mapping[str, Case], *, provider: str, path: str, done: bytes, stream: bool = False
) -> tuple[dict[str, Case], list[MutableMapping[str, Any]]]:
    """Let one worker make a conversation of each case, all at once; what the records hold, and what was logged."""
    names = list(cases)

    asked_before: set[str] = set()

    def answering(asked: Asked) -> bytes:
        messages = orjson.loads(asked.body)["messages"]
        name = _text(next(message for message in messages if message["role"] == "user"))
        if name in asked_before:
            return answer(done, _kind(done))
        asked_before.add(name)
        return answer(cases[name].said, _kind(cases[name].said), status=cases[name].status)

    server: RawServer
    async with raw_server(answering) as server:
        recipe = (
            RECIPE.replace("PROVIDER", provider)
            .replace("URL", server.url + path)
            .replace("STREAM", str(stream).lower())
        )
        with structlog.testing.capture_logs() as logged:
            async with benches.bench(recipe, [{"id": name, "prompt": name} for name in names]) as bench:
                await asyncio.gather(*(bench.execute(index) for index in range(len(names))))
                snapshot = await bench.worker.ledger.progress.snapshot("run")
                assert snapshot.pending == 0
    found: dict[str, Case] = {}
    for record in bench.records():
        RecordModel.model_validate(record)
        outcome = record["error"]["type"] if record["error"] else record["status"]
        tools = tuple(entry["error_type"] for entry in record["tool_results"])
        found[record["job_id"]] = replace(cases[record["job_id"]], outcome=outcome, tools=tools)
    return found, logged


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else content[0]["text"]


def _kind(said: bytes) -> str:
    return "content-type: " + ("text/event-stream" if said.startswith(b"data:") else "application/json")


def differing(found: Mapping[str, Case], wanted: Mapping[str, Case]) -> dict[str, Any]:
    """The cases that came out otherwise, or not at all."""
    return {
        name: (found[name].outcome, found[name].tools) if name in found else "no record"
        for name, case in wanted.items()
        if found.get(name) != case
    }


def nobody_foresaw(logged: list[MutableMapping[str, Any]]) -> list[MutableMapping[str, Any]]:
    """What was logged with a traceback."""
    return [entry for entry in logged if "exc_info" in entry or entry["log_level"] in {"error", "critical"}]


async def test_f20_each_malformed_answer_of_the_openai_table_becomes_its_record(benches: Benches) -> None:
    done = saying("Done.")
    found, logged = await outcomes_of(benches, OPENAI, provider="openai", path="/v1", done=done)
    assert differing(found, OPENAI) == {}
    assert nobody_foresaw(logged) == []


async def test_f20_each_malformed_answer_of_the_anthropic_table_becomes_its_record(benches: Benches) -> None:
    done = spoken(text("Done."))
    found, logged = await outcomes_of(benches, ANTHROPIC, provider="anthropic", path="", done=done)
    assert differing(found, ANTHROPIC) == {}
    assert nobody_foresaw(logged) == []


async def test_f20_each_malformed_stream_becomes_its_record(benches: Benches) -> None:
    done = events(piece({"content": "Done."}, "stop"), END)
    found, logged = await outcomes_of(benches, STREAMED, provider="openai", path="/v1", done=done, stream=True)
    assert differing(found, STREAMED) == {}
    assert nobody_foresaw(logged) == []


async def test_f20_each_malformed_answer_becomes_its_record_through_the_openai_package_too(benches: Benches) -> None:
    """Python's own JSON reads half a character, where ours refuses it."""
    half = "content with half a character"
    wanted = {**OPENAI, half: replace(OPENAI[half], outcome="ok")}
    found, logged = await outcomes_of(benches, wanted, provider="openai-sdk", path="/v1", done=saying("Done."))
    assert differing(found, wanted) == {}
    assert nobody_foresaw(logged) == []
