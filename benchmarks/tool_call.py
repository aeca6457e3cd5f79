"""What one call of a tool costs in the engine: matching, validation, history, deadline, and what its kind does."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.calibration import Sample, calibration_ms
from benchmarks.figure import Figure
from benchmarks.in_flight import cpu_seconds_of, on_loop
from benchmarks.options import Options
from benchmarks.servers import mcp_server, rest_server
from benchmarks.weather import TOOL
from benchmarks.workload import TOOL_CALLS, tools_configuration
from engines.configuration import ToolsConfiguration
from engines.engine import ToolEngine
from engines.loading import load_registry
from engines.speak import Speak
from engines.tool import ToolCall
from engines.wiring import build_engine

_SESSIONS = 5000


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of engine: `serving` runs what its calls need and yields the tools block; the limit is CPU-ms a call."""

    name: str
    serving: Callable[[Path], AbstractContextManager[ToolsConfiguration]]
    limit: float | None = None
    sessions: int = _SESSIONS


@contextmanager
def _on_the_loop(_: Path) -> Iterator[ToolsConfiguration]:
    yield tools_configuration(inline=True)


@contextmanager
def _in_threads(_: Path) -> Iterator[ToolsConfiguration]:
    yield tools_configuration(inline=False)


@contextmanager
def _rest(folder: Path) -> Iterator[ToolsConfiguration]:
    """`GET /weather?city=…` of a server in a process of its own, whose CPU does not count."""
    operation = {"rest_method": "GET", "rest_path": "/weather", "rest_param_locations": {"city": "query"}}
    with rest_server(folder) as url:
        yield ToolsConfiguration.model_validate(
            {
                "registry": [{"type": "inline", "namespace": "weather", "tools": [{**TOOL, "metadata": operation}]}],
                "engines": {"api": {"type": "rest", "url": url, "bearer_token": "not-a-secret"}},
            }
        )


@contextmanager
def _mcp_shared(folder: Path) -> Iterator[ToolsConfiguration]:
    """One connection for all conversations, to a server in a process of its own, whose CPU does not count."""
    with mcp_server(folder) as url:
        yield ToolsConfiguration.model_validate(
            {
                "registry": [{"type": "mcp", "url": url, "namespace": "weather"}],
                "engines": {"live": {"type": "mcp", "url": url}},
            }
        )


KINDS = (
    Kind("function on the loop", _on_the_loop, limit=0.1),
    Kind("function in a thread", _in_threads),
    Kind("rest", _rest, limit=0.6, sessions=1000),
    Kind("mcp, shared connection", _mcp_shared, limit=1.5, sessions=500),
)


def measure(options: Options) -> list[Figure]:
    """Sessions of four calls each, their setup and teardown included."""
    figures = []
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder, kind.serving(Path(folder)) as configuration:
            samples = on_loop(lambda kind=kind, tools=configuration: _samples(kind, tools, options))  # type: ignore[misc]
        figures.append(Figure.of_cpu(f"tool call, {kind.name}", samples, kind.limit))
    return figures


async def _samples(kind: Kind, configuration: ToolsConfiguration, options: Options) -> list[Sample]:
    sessions = options.jobs or kind.sessions
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
