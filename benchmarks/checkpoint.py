"""What the checkpoint of one turn costs, and how many bytes it stores, as the history grows."""

import asyncio
import secrets
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.calibration import Sample, calibration_ms, sampled
from benchmarks.figure import Figure
from benchmarks.in_flight import cpu_seconds_of, on_loop
from benchmarks.ledger_run import registered_run
from benchmarks.options import Options
from benchmarks.servers import redis_server
from conversations.messages import assistant, system, tool_call, tool_message, user
from conversations.state import State
from jobs.job import JobReference
from jobs.ledger import Ledger
from jobs.ledger.claims import Granted
from workers.checkpoint import CheckpointWriter, Restored

LIMIT_CPU_MS = 0.15
_JOBS = 1000
_TURNS = 20
_TURN_SECONDS = 0.2
_TEXT = "It is mild in Lisbon, with light rain from the west and little wind. " * 3


@dataclass(slots=True)
class _Round:
    turn: Sample
    delta_only: Sample
    bytes_by_turn: list[int]


@dataclass(slots=True)
class _Sizes:
    """Bytes that the checkpoint of turn n stored, of all jobs."""

    by_turn: list[list[int]] = field(default_factory=lambda: [[] for _ in range(_TURNS)])


def measure(options: Options) -> list[Figure]:
    """A turn is a reply with a call and its result: two deltas, appended one after the other."""
    with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder) / "redis") as server:
        rounds = on_loop(lambda: _rounds(server.url, options))
    first, last = rounds[-1].bytes_by_turn[0], rounds[-1].bytes_by_turn[-1]
    growth = [each.bytes_by_turn[-1] / each.bytes_by_turn[1] for each in rounds]
    return [
        Figure.of_cpu("checkpoint of a turn (two deltas)", [each.turn for each in rounds], LIMIT_CPU_MS),
        Figure.of_cpu("  of that, encoding the messages and the deltas", [each.delta_only for each in rounds]),
        Figure.plain(f"  bytes of turn 1, of turn {_TURNS}: {first}, {last}; growth", growth, "times", 1.1),
    ]


async def _rounds(url: str, options: Options) -> list[_Round]:
    async with Ledger.open(url) as ledger:
        jobs = options.jobs or _JOBS
        await _round(ledger, jobs=50, in_flight=50)  # loads scripts, opens connections
        return [await _round(ledger, jobs=jobs, in_flight=options.in_flight) for _ in range(options.rounds)]


async def _round(ledger: Ledger, *, jobs: int, in_flight: int) -> _Round:
    """Take the CPU of the same conversations with and without their checkpoints; the difference is the figure."""
    run_id = f"benchmark-{secrets.token_hex(4)}"
    await registered_run(ledger, run_id, jobs)
    sizes, chance = _Sizes(), Random(run_id)

    async def with_checkpoints(index: int) -> None:
        outcome = await ledger.claims.claim(JobReference(run_id, index), f"benchmark-{index}")
        if not isinstance(outcome, Granted):
            raise TypeError(f"job {index} was not granted: {outcome}")
        state = _beginning(index)
        writer = CheckpointWriter(ledger.checkpoints, outcome.claim, state, Restored(None, {}, 0))
        for turn in range(_TURNS):
            await asyncio.sleep(_TURN_SECONDS * chance.uniform(0.5, 1.5))
            for add in (_add_reply, _add_result):
                mark = state.mark()
                add(state, turn)
                if not await writer.save({}):
                    raise RuntimeError(f"job {index}: a checkpoint was refused")
                if index % 50 == 0:  # a few are enough, and the delta is made again for this
                    sizes.by_turn[turn].append(len(state.delta(mark)))

    async def without(index: int) -> None:
        outcome = await ledger.claims.claim(JobReference(run_id, index), f"benchmark-{index}")
        state = _beginning(index)
        for turn in range(_TURNS):
            await asyncio.sleep(_TURN_SECONDS * chance.uniform(0.5, 1.5))
            _add_reply(state, turn)
            _add_result(state, turn)
        if outcome is None:
            raise RuntimeError(f"job {index} got no answer")

    before_ms = calibration_ms()
    seconds = await cpu_seconds_of(with_checkpoints, count=jobs, in_flight=in_flight)
    bare_seconds = await cpu_seconds_of(without, count=jobs, in_flight=in_flight)
    after_ms = calibration_ms()
    turn_ms = (seconds - bare_seconds) * 1000 / (jobs * _TURNS)
    bytes_by_turn = [round(sum(of_turn) / (len(of_turn) / 2)) for of_turn in sizes.by_turn]
    return _Round(Sample(turn_ms, before_ms, after_ms), _delta_only(), bytes_by_turn)


def _delta_only() -> Sample:
    return sampled(lambda: statistics.median(_deltas_of_one_ms(number) for number in range(50)))


def _deltas_of_one_ms(number: int) -> float:
    state = _beginning(number)
    started = time.process_time()
    for turn in range(_TURNS):
        for add in (_add_reply, _add_result):
            mark = state.mark()
            add(state, turn)
            state.delta(mark)
    return (time.process_time() - started) * 1000 / _TURNS


def _beginning(number: int) -> State:
    return State(messages=[system(_TEXT), user(f"Question {number}: and in Lisbon?")], started_at="2026-01-01T00:00:00")


def _add_reply(state: State, turn: int) -> None:
    call = tool_call(f"call-{turn}", "weather__get_weather", '{"city":"Lisbon"}')
    state.append_reply(assistant(_TEXT, [call]), finish_reason="tool_calls", input_tokens=400, output_tokens=40)


def _add_result(state: State, turn: int) -> None:
    entry = {
        "call_id": f"call-{turn}",
        "name": "weather::get_weather",
        "result": {"city": "Lisbon", "conditions": "light rain", "celsius": 16, "wind_km_h": 18},
        "error": None,
        "error_type": None,
        "metadata": {},
    }
    state.append_results([entry])
    state.append(tool_message(f"call-{turn}", '{"city":"Lisbon","conditions":"light rain","celsius":16}'))
