"""`parley export`: a run's conversations as training data."""

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated

import typer

from producer.errors import UsageInvalid
from producer.run_address import RESULTS_OPTION, RUN_ARGUMENT, find_run
from producer.terminal import say
from results.exports.kinds import EXPORTS
from results.exports.preference import with_parents
from results.reading import visible_records

ExportFormat = StrEnum("ExportFormat", {name: name for name in EXPORTS})  # type: ignore[misc]  # made of the table
_OPENAI = ExportFormat("openai")
PREFERENCE = "preference"
_STDOUT = "-"


def export(
    *,
    run: Annotated[str, RUN_ARGUMENT],
    results: Annotated[str | None, RESULTS_OPTION] = None,
    output_format: Annotated[ExportFormat, typer.Option("--format", help="How a conversation is written.")] = _OPENAI,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE|-", help="- is stdout.")] = _STDOUT,
) -> None:
    """Write the conversations of RUN, one line each, every job once; openai writes those that ended ok.

    preference writes pairs of a forked run: the best continuation of each turn with each that is worse.
    """
    found = find_run(run, results)
    records = visible_records(found.store, found.run_id)
    if output_format.value == PREFERENCE:
        records = with_parents(found.store, records)
    written = 0
    with _output(output) as stream:
        for line in EXPORTS[output_format.value](records):
            stream.write(line)
            written += 1
    what = "pairs" if output_format.value == PREFERENCE else "conversations"
    say(f"{written} {what} written to {'stdout' if output == _STDOUT else output}")


@contextmanager
def _output(output: str) -> Iterator[IO[bytes]]:
    """A file that appears whole or not at all, or stdout."""
    if output == _STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        stream = temporary.open("xb")
    except OSError as error:
        raise UsageInvalid(f"--output {output}: {error.strerror}; name a file in a folder you may write to") from None
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
