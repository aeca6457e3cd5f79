"""What it costs to make records of 30 KB durable: encoding, compression and upload as shards."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import orjson

from benchmarks.calibration import Sample, calibration_ms
from benchmarks.figure import Figure
from benchmarks.in_flight import cpu_seconds_of, on_loop
from benchmarks.options import Options
from benchmarks.servers import BUCKET, s3_server
from conversations.messages import assistant, system, tool_call, tool_message, user
from results.async_store import AsyncStore
from results.record import Record, encode_record, entry_of
from results.shards import ShardWriter
from results.store import open_store

LIMIT_CPU_MS = 0.45
RECORD_BYTES = 30_000
_RECORDS = 4000
_DIFFERENT = 200
_WORDS = [
    *("wind", "rain", "harbour", "station", "pressure", "cloud", "evening", "coast", "warning", "degrees", "humid"),
    *(
        "clear",
        "north",
        "valley",
        "forecast",
        "tide",
        "Lisbon",
        "Bergen",
        "Nairobi",
        "Kyoto",
        "please",
        "check",
        "again",
    ),
    *("tomorrow", "morning", "because", "window", "umbrella", "train", "ferry", "bridge", "snow", "seldom", "often"),
    *("rather", "about", "between", "their", "would", "could", "measured", "rising", "falling", "steady", "gust"),
    *("drizzle", "fog", "sunrise"),
]


def measure(options: Options) -> list[Figure]:
    """To the S3 stand-in and to a folder; as many records at once as conversations are in flight."""
    bodies = [_encoded_parts(Random(number)) for number in range(_DIFFERENT)]
    figures = []
    with tempfile.TemporaryDirectory() as folder, s3_server(Path(folder)) as environment:
        for name, url in (("S3 server", f"s3://{BUCKET}/records"), ("folder", f"{folder}/records")):
            with _environment(environment):
                samples = on_loop(lambda url=url: _samples(url, bodies, options))  # type: ignore[misc]
            figures.append(Figure.of_cpu(f"record of 30 KB, durable in shards, {name}", samples, LIMIT_CPU_MS))
    return figures


async def _samples(url: str, bodies: list[dict[str, Any]], options: Options) -> list[Sample]:
    records, samples = options.jobs or _RECORDS, []
    async with AsyncStore(open_store(url)) as store:
        for number in range(options.rounds + 1):
            async with ShardWriter(store, f"benchmark-{number}", writer="benchmark", linger_seconds=0.5) as sink:

                async def one(index: int, sink: ShardWriter = sink) -> None:
                    record = _record(index, bodies[index % _DIFFERENT])
                    await sink.write(encode_record(record), entry_of(record))

                before_ms = calibration_ms()
                seconds = await cpu_seconds_of(one, count=records, in_flight=options.in_flight)
                sample = Sample(seconds * 1000 / records, before_ms, calibration_ms())
            samples.append(sample)
    return samples[1:]  # the first warms up


def _record(index: int, parts: Mapping[str, Any]) -> Record:
    return Record(
        run_id="benchmark",
        job_id=f"job-{index}",
        index=index,
        attempt=1,
        status="ok",
        input_tokens=7000,
        output_tokens=900,
        model_calls=9,
        tool_calls=8,
        model="mock",
        seed=index,
        started_at="2026-01-01T00:00:00.000+00:00",
        finished_at="2026-01-01T00:01:00.000+00:00",
        **parts,
    )


def _encoded_parts(chance: Random) -> dict[str, Any]:
    """Make one conversation of about 30 KB, encoded as a worker has it."""
    messages = [system(_text(chance, 1000)), user(_text(chance, 400))]
    results: list[dict[str, Any]] = []
    while sum(len(orjson.dumps(each)) for each in (*messages, *results)) < RECORD_BYTES - 2500:
        call_id = f"call_{chance.getrandbits(96):024x}"
        arguments = orjson.dumps({"city": chance.choice(_WORDS), "days": chance.randrange(7)}).decode()
        result = {"readings": [round(chance.uniform(-20, 40), 1) for _ in range(80)], "remark": _text(chance, 300)}
        messages.append(assistant(_text(chance, 600), [tool_call(call_id, "weather__get_weather", arguments)]))
        messages.append(tool_message(call_id, orjson.dumps(result).decode()))
        entry = {"call_id": call_id, "name": "weather::get_weather", "result": result}
        results.append({**entry, "error": None, "error_type": None, "metadata": {}})
    messages.append(assistant(_text(chance, 1200)))
    return {
        "messages": [orjson.dumps(message) for message in messages],
        "tool_results": [orjson.dumps(result) for result in results],
    }


def _text(chance: Random, characters: int) -> str:
    words: list[str] = []
    while sum(map(len, words)) + len(words) < characters:
        words.append(chance.choice(_WORDS))
    return " ".join(words)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the block; a store reads its credentials from the environment."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
