"""The table of export formats."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from results.exports import jsonl, openai, preference

Export = Callable[..., Iterator[bytes]]  # (records, *, statuses=...) -> lines

EXPORTS: Final[Mapping[str, Export]] = {
    "jsonl": jsonl.export_lines,
    "openai": openai.export_lines,
    "preference": preference.export_lines,
}
