"""What one call of a local tool costs in the engine: matching, validation, history, deadline, the function."""

from pathlib import Path

from benchmarks.calibration import Sample, calibration_ms
from benchmarks.figure import Figure
from benchmarks.in_flight import cpu_seconds_of, on_loop
from benchmarks.options import Options
from benchmarks.workload import TOOL_CALLS, tools_configuration
from engines.engine import ToolEngine
from engines.loading import load_registry
from engines.speak import Speak
from engines.tool import ToolCall
from engines.wiring import build_engine

_SESSIONS = 5000


def measure(options: Options) -> list[Figure]:
    """Sessions of four calls each, their setup and teardown included; no limit is set for these."""
    sessions = options.jobs or _SESSIONS
    return [
        Figure.of_cpu(
            f"tool call, function {'on the loop' if inline else 'in a thread'}",
            on_loop(lambda inline=inline: _samples(sessions, options, inline=inline)),  # type: ignore[misc]
        )
        for inline in (True, False)
    ]


async def _samples(sessions: int, options: Options, *, inline: bool) -> list[Sample]:
    configuration = tools_configuration(inline=inline)
    registry = load_registry(configuration, folder=Path(), environment={})
    engine = build_engine(configuration, registry, speak_for=_no_model)
    await engine.open()
    try:
        await cpu_seconds_of(lambda number: _session(engine, number), count=100, in_flight=100)
        samples = []
        for _ in range(options.rounds):
            before_ms = calibration_ms()
            seconds = await cpu_seconds_of(
                lambda number: _session(engine, number), count=sessions, in_flight=options.in_flight
            )
            samples.append(Sample(seconds * 1000 / (sessions * TOOL_CALLS), before_ms, calibration_ms()))
        return samples
    finally:
        await engine.close()


async def _session(engine: ToolEngine, number: int) -> None:
    session_id = f"benchmark.{number}"
    await engine.setup(session_id, seed=number)
    for turn in range(TOOL_CALLS):
        call = ToolCall(name="get_weather", namespace="weather", arguments={"city": "Lisbon"}, call_id=f"call-{turn}")
        (result,) = await engine.execute(session_id, [call])
        if result.is_error:
            raise RuntimeError(f"the tool of W failed: {result.error}")
    await engine.teardown(session_id)


def _no_model(_: object) -> Speak:
    raise RuntimeError("W has no tool that a model plays")
