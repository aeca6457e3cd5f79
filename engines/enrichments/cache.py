"""What enrichments worked out, kept in files for the next time: dear to make, and the same for the same input (D79)."""

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from engines.plain import JSONObject, canonical

log = structlog.get_logger(__name__)

_FOLDER = "PARLEY_CACHE_DIR"


def cache_folder(environment: Mapping[str, str]) -> Path | None:
    """Return where caches lie: PARLEY_CACHE_DIR, else `parley` in the user's cache folder, None when there is none."""
    if environment.get(_FOLDER):
        return Path(environment[_FOLDER])
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"]) / "parley"
    return Path(environment["HOME"]) / ".cache" / "parley" if environment.get("HOME") else None


@dataclass(frozen=True, slots=True)
class KeptEntries:
    """One file of entries, `{folder}/enrichments/{kind}/{fingerprint}.json`; without a folder nothing is kept.

    Many processes may add to it at once: each reads, merges and replaces the file under a lock beside it, and readers
    see an old file or a new one, never a half.
    """

    folder: Path | None
    kind: str
    fingerprint: str

    def load(self) -> JSONObject:
        """Return what is kept; a file that cannot be read is ignored with a warning."""
        path = self._path()
        if path is None or not path.exists():
            return {}
        try:
            entries = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            log.warning("a cache that cannot be read is ignored", path=str(path), cause=str(error))
            return {}
        if isinstance(entries, dict):
            return entries
        log.warning("a cache that cannot be read is ignored", path=str(path), cause="it holds no object")
        return {}

    def add(self, entries: Mapping[str, object]) -> None:
        """Keep these entries besides those that are there; a folder that cannot be written costs a warning only."""
        path = self._path()
        if path is None or not entries:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _locked(path.with_suffix(".lock")):
                _replace(path, canonical({**self.load(), **entries}))
        except OSError as error:
            log.warning("an enrichment could not be kept", path=str(path), cause=str(error))

    def _path(self) -> Path | None:
        if self.folder is None:
            return None
        return self.folder / "enrichments" / self.kind / f"{self.fingerprint}.json"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _replace(path: Path, text: str) -> None:
    """Write beside the file, then rename: a reader or a crash never meets half a file."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".new")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
