"""What `parley export` takes of memory and CPU; a tenth of the jobs have a second record that must not show."""

import tempfile
from pathlib import Path
from typing import Any

import orjson

from benchmarks.calibration import Sample, calibration_ms
from benchmarks.children import child
from benchmarks.figure import Figure
from benchmarks.in_flight import cpu_seconds_of, on_loop
from benchmarks.options import Options
from benchmarks.process_tree import TreeWatch
from benchmarks.servers import PARLEY
from benchmarks.workload import SYSTEM, TOOL_CALLS, question
from conversations.messages import assistant, system, tool_call, tool_message, user
from results.async_store import AsyncStore
from results.exports.kinds import EXPORTS
from results.manifest import InputPart, RunManifest, write_manifest
from results.record import Record, encode_record, entry_of
from results.shards import ShardWriter
from results.store import open_store

MEMORY_LIMIT_MB = 2000.0
_JOBS = 100_000
_RUN_ID = "benchmark"
_TWICE_EVERY = 10
_LANES = 5000
_RESULT = '{"city":"Lisbon","conditions":"light rain","celsius":16,"wind_km_h":18}'
_MB = 1e6


def measure(options: Options) -> list[Figure]:
    """Export the same run in every format there is; the figure of the table is Parquet's, with 10^6 records."""
    jobs, figures = options.jobs or _JOBS, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        on_loop(lambda: _write_run(folder, jobs))
        for kind in EXPORTS:
            figures += _export(folder, kind, jobs)
    return figures


def _export(folder: Path, kind: str, jobs: int) -> list[Figure]:
    output = folder / f"out.{kind}"
    command: list[str | Path] = [
        *PARLEY,
        "export",
        _RUN_ID,
        "--results",
        folder / "results",
        "--format",
        kind,
        "--output",
        output,
    ]
    before_ms = calibration_ms()
    with child(command, folder / "export.log") as process, TreeWatch(process.pid) as watch:
        said = process.finish(within_seconds=3600)
    cpu_ms = watch.cpu_seconds * 1000 / jobs
    if not said.startswith(f"{jobs} conversations"):
        raise RuntimeError(f"{jobs} jobs, but: {said}")
    output.unlink()
    return [
        Figure.plain(f"export of {jobs:,} records as {kind}, memory", [watch.most_bytes / _MB], "MB", MEMORY_LIMIT_MB),
        Figure.of_cpu(f"export as {kind}, a record", [Sample(cpu_ms, before_ms, calibration_ms())]),
    ]


async def _write_run(folder: Path, jobs: int) -> None:
    async with AsyncStore(open_store(str(folder / "results"))) as store:
        write_manifest(store.store, _manifest(jobs))
        for attempt, every in ((1, 1), (2, _TWICE_EVERY)):
            async with ShardWriter(store, _RUN_ID, writer="benchmark", linger_seconds=60) as sink:

                async def one(
                    number: int, sink: ShardWriter = sink, attempt: int = attempt, every: int = every
                ) -> None:
                    record = _record(number * every, attempt)
                    await sink.write(encode_record(record), entry_of(record))

                await cpu_seconds_of(one, count=jobs // every, in_flight=_LANES)


def _record(index: int, attempt: int) -> Record:
    messages = [system(SYSTEM), user(question(index))]
    for turn in range(TOOL_CALLS):
        call = tool_call(f"call-{index}-{turn}", "weather__get_weather", '{"city":"Lisbon"}')
        messages += [assistant(None, [call]), tool_message(f"call-{index}-{turn}", _RESULT)]
    messages.append(assistant(f"In Lisbon it rains a little, and question {index} is answered with that."))
    return Record(
        run_id=_RUN_ID,
        job_id=f"job-{index}",
        index=index,
        attempt=attempt,
        status="ok",
        messages=messages,
        tool_results=[_tool_result(f"call-{index}-{turn}") for turn in range(TOOL_CALLS)],
        model="mock",
        seed=index,
    )


def _tool_result(call_id: str) -> dict[str, Any]:
    entry = {"call_id": call_id, "name": "weather::get_weather", "result": orjson.loads(_RESULT)}
    return {**entry, "error": None, "error_type": None, "metadata": {}}


def _manifest(jobs: int) -> RunManifest:
    digest = "0" * 64
    return RunManifest(
        run_id=_RUN_ID,
        name="benchmark",
        created_at="2026-01-01T00:00:00+00:00",
        jobs=jobs,
        recipe_key=f"{_RUN_ID}/recipe.json",
        recipe_digest=digest,
        input_digest=digest,
        parts=(InputPart(key=f"{_RUN_ID}/input/part-000000.jsonl.zst", first_index=0, count=jobs, digest=digest),),
        routes=((),),
        uniform_route=0,
    )
