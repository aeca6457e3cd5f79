"""A job's checkpoint: the deltas of its state, and the scratch of its session, appended turn by turn."""

from dataclasses import dataclass
from typing import Any

import orjson
import structlog

from conversations.encoding import encode_json
from conversations.state import Mark, State, restored
from jobs.ledger.checkpoints import Checkpoints
from jobs.ledger.claims import Claim

log = structlog.get_logger(__name__)

_EMPTY = b"{}"
_SEPARATOR = b"\n"  # JSON as orjson writes it has no line break


@dataclass(frozen=True, slots=True)
class Restored:
    """What a checkpoint holds: the state (None for a job that has not begun) and the session's scratch."""

    state: State | None
    scratch: dict[str, Any]
    length: int
    is_whole: bool = False  # the state comes from a pause: the checkpoint begins anew with all of it


class CheckpointWriter:
    """Appends what a turn added. Nothing is stored when nothing changed."""

    __slots__ = ("_checkpoints", "_claim", "_length", "_mark", "_scratch", "_state")

    def __init__(self, checkpoints: Checkpoints, claim: Claim, state: State, restored: Restored) -> None:
        self._checkpoints = checkpoints
        self._claim = claim
        self._state = state
        goes_on = restored.state is not None and not restored.is_whole
        self._mark = state.mark() if goes_on else Mark()
        self._scratch = _encoded(restored.scratch) if goes_on or not restored.scratch else b""
        self._length = restored.length

    async def save(self, scratch: dict[str, Any]) -> bool:
        """Store the delta since the last call; False when the claim is lost."""
        encoded_scratch = _encoded(scratch)
        mark = self._state.mark()
        if mark.revision == self._mark.revision and encoded_scratch == self._scratch:
            return True
        entry = self._state.delta(self._mark)
        if encoded_scratch != self._scratch:
            entry += _SEPARATOR + encoded_scratch
        if not await self._checkpoints.append(self._claim, self._length, entry):
            return False
        self._length += 1
        self._mark, self._scratch = mark, encoded_scratch
        return True


def _encoded(scratch: dict[str, Any]) -> bytes:
    """The scratch as JSON; most have none, and need no bytes of their own."""
    return encode_json(scratch) if scratch else _EMPTY


async def restore(checkpoints: Checkpoints, claim: Claim) -> Restored:
    """Read a job's checkpoint back, as far as it is good (F38). A first attempt has none and asks nobody."""
    stored = await checkpoints.read(claim.job) if claim.attempt > 1 else []
    parts = [entry.partition(_SEPARATOR) for entry in stored]
    found = restored(delta for delta, _, _ in parts)
    if found.problem is not None:
        log.warning("checkpoint cut", job=claim.job.task_id, kept=found.used, of=len(stored), cause=found.problem)
        await checkpoints.cut(claim, found.used)
    if not found.used:
        return Restored(None, {}, 0)
    scratches = [scratch for _, separator, scratch in parts[: found.used] if separator]
    return Restored(found.state, orjson.loads(scratches[-1]) if scratches else {}, found.used)
