"""A paused job as object storage keeps it: its state, what its session's tools keep, and the calls it waits for."""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import orjson
import zstandard

from jobs.errors import InputCorrupt
from results.store import Store

JSONObject = dict[str, Any]
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class PendingCall:
    """One call that somebody outside is to answer; `seconds` is how long it may take, None: any time."""

    call_id: str
    name: str
    arguments: JSONObject
    seconds: float | None = None

    def to_dict(self) -> JSONObject:
        """Return `{"call_id", "name", "arguments", "seconds"}`."""
        return {"call_id": self.call_id, "name": self.name, "arguments": self.arguments, "seconds": self.seconds}


@dataclass(frozen=True, slots=True)
class PausedJob:
    """What the next attempt needs to go on, on any worker; `state` is the conversation's JSON."""

    index: int
    attempt: int
    job_id: str
    route: int
    paused_at: str
    calls: tuple[PendingCall, ...]
    state: bytes
    scratch: JSONObject

    def encoded(self) -> bytes:
        """Return the object: one zstd frame of JSON."""
        body = {
            "format": _FORMAT,
            "index": self.index,
            "attempt": self.attempt,
            "job_id": self.job_id,
            "route": self.route,
            "paused_at": self.paused_at,
            "calls": [call.to_dict() for call in self.calls],
            "state": orjson.Fragment(orjson.dumps(self.state.decode())),
            "scratch": self.scratch,
        }
        return _compressed(body)

    @classmethod
    def decoded(cls, data: bytes, key: str) -> Self:
        """Read what `encoded` wrote; InputCorrupt for anything else."""
        try:
            body = _decompressed(data)
            if body["format"] != _FORMAT:
                raise InputCorrupt(f"{key} is of format {body['format']}, this version reads {_FORMAT}")
            calls = tuple(PendingCall(**call) for call in body["calls"])
            return cls(
                body["index"], body["attempt"], body["job_id"], body["route"], body["paused_at"], calls,
                body["state"].encode(), body["scratch"],
            )  # fmt: skip
        except (zstandard.ZstdError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputCorrupt(f"{key} is no paused job: {type(error).__name__}: {error}") from error


def paused_folder(run_id: str) -> str:
    """Return where paused jobs of a run lie."""
    return f"{run_id}/paused"


def paused_key(run_id: str, index: int, attempt: int) -> str:
    """Return the key of a job's state as one attempt left it."""
    return f"{paused_folder(run_id)}/{index:09d}-{attempt:06d}.json.zst"


def answers_folder(run_id: str) -> str:
    """Return where answers from outside lie."""
    return f"{run_id}/answers"


def new_answers_key(run_id: str, index: int, at_seconds: float) -> str:
    """Return a key for answers that somebody gives now (Unix time); keys sort by time, and no two callers have one."""
    return f"{answers_folder(run_id)}/{index:09d}-{round(at_seconds * 1000):015d}-{secrets.token_hex(16)}.json.zst"


def write_answers(store: Store, key: str, results: Mapping[str, JSONObject]) -> None:
    """Store answers, `{"result"}` or `{"error"}` by call id, over what is under the key."""
    store.put(key, _compressed({"format": _FORMAT, "results": dict(results)}))


def read_answers(store: Store, key: str) -> dict[str, JSONObject]:
    """Return the answers under a key; InputCorrupt when they cannot be read."""
    try:
        results = _decompressed(store.get(key))["results"]
    except (zstandard.ZstdError, ValueError, KeyError, TypeError) as error:
        raise InputCorrupt(f"{key} holds no answers: {type(error).__name__}: {error}") from error
    return {str(call_id): dict(result) for call_id, result in results.items()}


def read_paused(store: Store, key: str) -> PausedJob:
    """Return a paused job."""
    return PausedJob.decoded(store.get(key), key)


def newest_paused(store: Store, run_id: str) -> dict[int, str]:
    """Return the key of each job's newest state, by index: also of jobs that went on since."""
    return {_index_of(stored.key): stored.key for stored in store.list(paused_folder(run_id))}


def answers_by_job(store: Store, run_id: str) -> dict[int, list[str]]:
    """Return the keys of all answers, by index."""
    found: dict[int, list[str]] = {}
    for stored in store.list(answers_folder(run_id)):
        found.setdefault(_index_of(stored.key), []).append(stored.key)
    return found


def first_answers(store: Store, keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each call id that is answered under these keys with the first key that answers it: the earliest wins."""
    seen: set[str] = set()
    for key in sorted(keys):
        for call_id in read_answers(store, key):
            if call_id not in seen:
                seen.add(call_id)
                yield call_id, key


def _index_of(key: str) -> int:
    return int(key.rpartition("/")[2].partition("-")[0])


def _compressed(body: JSONObject) -> bytes:
    return zstandard.ZstdCompressor(level=3, write_checksum=True).compress(orjson.dumps(body))


def _decompressed(data: bytes) -> JSONObject:
    body: JSONObject = orjson.loads(zstandard.ZstdDecompressor().decompress(data))
    return body
