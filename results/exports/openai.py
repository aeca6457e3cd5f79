"""Records as OpenAI fine-tuning lines: `{"messages": [...], "tools": [...]}`."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import orjson


def export_lines(records: Iterable[dict[str, Any]], *, statuses: Collection[str] = ("ok",)) -> Iterator[bytes]:
    """Return a line with its newline for each record of these statuses; `tools` is left out where there are none."""
    for record in records:
        if record["status"] not in statuses:
            continue
        line = {"messages": record["messages"]}
        if record["tools"]:
            line["tools"] = record["tools"]
        yield orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
