"""Records as they are stored, one JSON line each, every job once."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import orjson

from results.entries import STATUSES


def export_lines(records: Iterable[dict[str, Any]], *, statuses: Collection[str] = STATUSES) -> Iterator[bytes]:
    """Return a line with its newline for each record of these statuses."""
    for record in records:
        if record["status"] in statuses:
            yield orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
