"""Where the objects of a run lie, and which names are safe to build keys from (the S15 rule)."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from results.errors import InvalidKey

RUN_ID_PATTERN: Final = r"[A-Za-z0-9._-]{1,128}"
KEY_BYTES_MAXIMUM: Final = 1024

_RUN_ID = re.compile(RUN_ID_PATTERN)
_WRITER = re.compile(r"[A-Za-z0-9._-]{1,200}")
_KEY = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*")
_SHARD = re.compile(
    r"(?P<run_id>[A-Za-z0-9._-]+)/data/\d{8}T\d{2}/"
    r"(?P<seal_ms>\d{13,})-(?P<writer>[A-Za-z0-9._-]+)-(?P<sequence>\d{6,})-(?P<count>\d{1,9})\.jsonl\.zst"
)


@dataclass(frozen=True, slots=True)
class ShardName:
    """The parts of a shard's key."""

    run_id: str
    sealed_ms: int
    writer: str
    sequence: int
    count: int

    @property
    def key(self) -> str:
        """`{run}/data/{YYYYMMDDTHH}/{seal_ms}-{writer}-{seq}-{count}.jsonl.zst`, the hour in UTC."""
        hour = datetime.fromtimestamp(self.sealed_ms / 1000, UTC).strftime("%Y%m%dT%H")
        name = f"{self.sealed_ms:013d}-{self.writer}-{self.sequence:06d}-{self.count}"
        return f"{data_folder(self.run_id)}/{hour}/{name}.jsonl.zst"

    @classmethod
    def parse(cls, key: str) -> "ShardName | None":
        """Return the parts of a shard's key, None for any other key."""
        found = _SHARD.fullmatch(key)
        if found is None:
            return None
        return cls(
            run_id=found["run_id"],
            sealed_ms=int(found["seal_ms"]),
            writer=found["writer"],
            sequence=int(found["sequence"]),
            count=int(found["count"]),
        )


def check_run_id(run_id: str) -> str:
    """Return the run id, or raise InvalidKey when a key built from it could leave the run's folder."""
    if _RUN_ID.fullmatch(run_id) is None or run_id in {".", ".."}:
        raise InvalidKey(f"run id {run_id[:200]!r}: use 1 to 128 letters, digits, dots, underscores and hyphens")
    return run_id


def check_writer(writer: str) -> str:
    """Return the writer's name, or raise InvalidKey when it does not fit into a key."""
    if _WRITER.fullmatch(writer) is None:
        raise InvalidKey(f"writer {writer[:200]!r}: use 1 to 200 letters, digits, dots, underscores and hyphens")
    return writer


def check_key(key: str) -> str:
    """Return the key, or raise InvalidKey: segments of safe characters, none of them `.` or `..`."""
    climbs = any(part in {".", ".."} for part in key.split("/"))
    if climbs or len(key) > KEY_BYTES_MAXIMUM or _KEY.fullmatch(key) is None:
        raise InvalidKey(
            f"key {key[:200]!r}: use letters, digits, dots, underscores and hyphens between single slashes"
        )
    return key


def check_folder(prefix: str) -> str:
    """Return the prefix as a folder without its last slash; "" is the whole store."""
    folder = prefix.removesuffix("/")
    return check_key(folder) if folder else ""


def manifest_key(run_id: str) -> str:
    """Return where the manifest of a run lies."""
    return f"{check_run_id(run_id)}/manifest.json"


def part_key(run_id: str, number: int) -> str:
    """Return where input part `number` of a run lies."""
    return f"{check_run_id(run_id)}/input/part-{number:06d}.jsonl.zst"


def data_folder(run_id: str) -> str:
    """Return the folder of a run's shards."""
    return f"{check_run_id(run_id)}/data"
