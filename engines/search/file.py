"""`search/file`: a corpus in a JSONL or JSON file on the worker's machine."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import Field

from engines.checked import checked
from engines.errors import ConfigurationInvalid, EngineError, Place
from engines.kind_settings import EngineParts
from engines.search.corpus import Corpus, CorpusSearcher
from engines.search.documents import Document, Projection
from engines.search.engine import SearchEngine
from engines.search.searching import SearchSettings


class CorpusUnreadable(EngineError, ValueError):
    """A corpus file that cannot be used; the message says where in it and why."""


class FileSettings(SearchSettings):
    """`format` is told by the file's name where it is left out: `.json` is one list, all else one record a line."""

    path: str = Field(min_length=1)
    format: Literal["jsonl", "json"] | None = None
    projection: dict[str, str] = Field(default_factory=dict)
    max_bytes: int = Field(default=512 << 20, ge=1)


def from_parts(parts: EngineParts) -> SearchEngine:
    """Find the file; it is read when the first session begins, and let go of after the last."""
    settings = checked(FileSettings, parts.settings, at=parts.at)
    path = _found(settings.path, at=(*parts.at, "path"))
    return SearchEngine(
        parts.toolsets, CorpusSearcher(lambda: read_corpus(path, settings)), settings, **parts.contract(settings)
    )


def read_corpus(path: Path, settings: FileSettings) -> Corpus:
    """Read and index a file; CorpusUnreadable names file and line."""
    try:
        if (size := path.stat().st_size) > settings.max_bytes:
            raise CorpusUnreadable(f"{path}: {size:,} bytes are more than max_bytes; raise it, or use a search server")
        is_list = (settings.format or ("json" if path.suffix.lower() == ".json" else "jsonl")) == "json"
        return Corpus.of(list(_documents(_listed(path) if is_list else _lines(path), path, settings)))
    except OSError as error:
        raise CorpusUnreadable(f"{path}: cannot be read: {error.strerror or error}") from error


def _documents(records: Iterator[tuple[int, Any]], path: Path, settings: FileSettings) -> Iterator[Document]:
    projection = Projection(settings.projection)
    for place, raw in records:
        if not isinstance(raw, dict):
            raise CorpusUnreadable(f"{path}:{place}: a record is an object, got {type(raw).__name__}")
        yield projection.document(raw, position=place)


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.isspace():
                yield number, _parsed(line, f"{path}:{number}")


def _listed(path: Path) -> Iterator[tuple[int, Any]]:
    records = _parsed(path.read_bytes(), str(path))
    if not isinstance(records, list):
        raise CorpusUnreadable(f"{path}: a .json corpus is a list of records, got {type(records).__name__}")
    yield from enumerate(records, start=1)


def _parsed(text: bytes, where: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise CorpusUnreadable(f"{where}: not JSON: {error}") from error


def _found(path: str, *, at: Place) -> Path:
    """Return the file: as written, else beside the modules, which is where a recipe's own folder is looked for."""
    written = Path(path)
    for folder in (Path(), *map(Path, sys.path)):
        if (folder / written).is_file():
            return (folder / written).resolve()
    raise ConfigurationInvalid(f"no file {path!r} here, nor in any folder where modules are looked for", at=at)
