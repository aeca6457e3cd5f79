"""The job lines of a run as they are stored, read part by part."""

from collections import OrderedDict
from typing import Any

import orjson

from jobs.job import JobLine
from jobs.run import ROUTE_FIELD, part_of, read_part
from producer.run_address import FoundRun

_PARTS_KEPT = 16


class StoredLines:
    """Finds a job's line; the last few parts stay in memory."""

    def __init__(self, found: FoundRun) -> None:
        self._found = found
        self._parts: OrderedDict[int, list[bytes]] = OrderedDict()

    def of(self, index: int) -> JobLine:
        """The line of one job; InputCorrupt when its part is not what the manifest says."""
        parts = self._found.manifest.parts
        number = part_of(parts, index)
        if number not in self._parts:
            self._parts[number] = read_part(self._found.store, parts[number])
            if len(self._parts) > _PARTS_KEPT:
                self._parts.popitem(last=False)
        self._parts.move_to_end(number)
        line: dict[str, Any] = orjson.loads(self._parts[number][index - parts[number].first_index])
        line.pop(ROUTE_FIELD)
        return JobLine.model_validate(line)
