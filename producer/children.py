"""The child processes of an embedded run, written down: for a start after a kill -9, and for `parley status`."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from producer.processes import ProcessIdentity
from producer.run_address import folder_of

FILE_NAME = "children.json"


def run_folder(results_url: str, run_id: str) -> Path:
    """Where an embedded run keeps its Redis, its logs and its lock."""
    return (folder_of(results_url) or Path(".parley")) / run_id


def private_broker(results_url: str, run_id: str) -> str | None:
    """The URL of the private Redis of a run that is being made on this machine; None when there is none."""
    note = _read(run_folder(results_url, run_id) / FILE_NAME)
    alive = any(identity.is_alive for identity in _identities(note))
    return note.get("broker") if alive else None


@dataclass(slots=True)
class Children:
    """Who the children are; the file is the owner's only, since it holds the private Redis's password."""

    folder: Path
    broker_url: str | None = None
    pids: dict[str, int] = field(default_factory=dict)

    def kill_leftovers(self) -> None:
        """End the children of an earlier start that a kill -9 left behind."""
        for identity in _identities(_read(self._path)):
            identity.kill_group()

    def note(self, name: str, pid: int) -> None:
        """Write down that the child `name` is `pid` now."""
        self.pids[name] = pid
        identities = [ProcessIdentity.of(child) for child in self.pids.values()]
        note = {
            "broker": self.broker_url,
            "processes": [{"pid": each.pid, "started": each.started} for each in identities if each is not None],
        }
        temporary = self._path.with_suffix(".tmp")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(note, file)
        temporary.replace(self._path)

    def forget(self) -> None:
        """Take the note away: all children have ended."""
        self._path.unlink(missing_ok=True)

    @property
    def _path(self) -> Path:
        return self.folder / FILE_NAME


def _read(path: Path) -> dict[str, Any]:
    try:
        note = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _identities(note: dict[str, Any]) -> list[ProcessIdentity]:
    try:
        return [ProcessIdentity(int(row["pid"]), str(row["started"])) for row in note["processes"]]
    except (KeyError, TypeError, ValueError):
        return []
