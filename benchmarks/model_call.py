"""What one model call costs in our client, 500 conversations of W in flight."""

import tempfile
from pathlib import Path

import orjson

from benchmarks.calibration import Sample, calibration_ms
from benchmarks.figure import Figure
from benchmarks.in_flight import cpu_seconds_of, on_loop
from benchmarks.options import Options
from benchmarks.servers import mock_model
from benchmarks.workload import MODEL_CALLS, SYSTEM, question, tools_configuration
from conversations.messages import Message, system, tool_calls_of, tool_message, user
from conversations.models.kinds import build_model
from conversations.models.model import Model, ModelRequest
from conversations.models.settings import ModelSettings
from conversations.selection import ToolSelection
from engines.loading import load_registry

LIMIT_CPU_MS = 0.5
_CONVERSATIONS = 2000
_WARM_UP = 200
_RESULT = orjson.dumps({"city": "Lisbon", "conditions": "light rain", "celsius": 16, "wind_km_h": 18}).decode()


def measure(options: Options) -> list[Figure]:
    """Ask through the model that a recipe would get, its retries included; the encoding of new messages too."""
    with tempfile.TemporaryDirectory() as folder, mock_model(Path(folder)) as base_url:
        samples = on_loop(lambda: _samples(base_url, options))
    return [Figure.of_cpu(f"model call, {options.in_flight} in flight", samples, LIMIT_CPU_MS)]


async def _samples(base_url: str, options: Options) -> list[Sample]:
    model = build_model(ModelSettings(provider="openai", model="mock", base_url=base_url))
    registry = load_registry(tools_configuration(), folder=Path(), environment={})
    tools = ToolSelection.of(registry.all_tools())
    conversations = options.jobs or _CONVERSATIONS
    await model.open()
    try:
        await cpu_seconds_of(lambda number: _converse(model, tools, number), count=_WARM_UP, in_flight=_WARM_UP)
        samples = []
        for _ in range(options.rounds):
            before_ms = calibration_ms()
            seconds = await cpu_seconds_of(
                lambda number: _converse(model, tools, number), count=conversations, in_flight=options.in_flight
            )
            samples.append(Sample(seconds * 1000 / (conversations * MODEL_CALLS), before_ms, calibration_ms()))
        return samples
    finally:
        await model.close()


async def _converse(model: Model, tools: ToolSelection, number: int) -> None:
    """W without an engine: each call gets the same result."""
    messages: list[Message] = [system(SYSTEM), user(question(number))]
    encoded = [orjson.dumps(message) for message in messages]
    for _ in range(MODEL_CALLS):
        request = ModelRequest(
            messages=messages,
            encoded_messages=encoded,
            tools=tools.native,
            encoded_tools=tools.encoded,
            seed=number,
            session_id=f"benchmark.{number}",
        )
        reply = await model.ask(request)
        new = [reply.message, *(tool_message(call["id"], _RESULT) for call in tool_calls_of(reply.message))]
        messages += new
        encoded += [orjson.dumps(message) for message in new]
    if len(messages) != 2 * MODEL_CALLS + 1:
        raise RuntimeError(f"the model's stand-in did not play W: {len(messages)} messages")
