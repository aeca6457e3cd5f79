"""How an attempt ends: a value, matched by whoever concludes the job."""

from dataclasses import dataclass
from typing import Any, Literal, Self

from engines.tool import ToolCall

Status = Literal["ok", "failed", "cancelled", "dead"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something did not work: a type for counting, a message for people."""

    type: str
    message: str

    @classmethod
    def of(cls, error: dict[str, Any] | None) -> Self:
        """Take a state's ``error`` over."""
        error = error or {"type": "unknown", "message": "the conversation ended without saying why"}
        return cls(str(error["type"]), str(error["message"]))

    def to_dict(self) -> dict[str, Any]:
        """Return the record's ``error``."""
        return {"type": self.type, "message": self.message}


@dataclass(frozen=True, slots=True)
class Ended:
    """The conversation is over: record it."""

    status: Status
    error: Failure | None = None


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The process is draining: another worker goes on from the checkpoint."""


@dataclass(frozen=True, slots=True)
class Waits:
    """The conversation waits for answers from outside; `scratch` is what its session's tools kept."""

    calls: tuple[ToolCall, ...]
    scratch: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Paused:
    """It waits, holding nothing: its state is durable, and the ledger knows what it waits for."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The claim is another attempt's now: do nothing more, write nothing."""


@dataclass(frozen=True, slots=True)
class Postponed:
    """It may work later. ``strikes`` says how much this counts against the job's attempts."""

    reason: Failure
    strikes: int = 1


Ending = Ended | Interrupted | Lost | Paused | Postponed | Waits


class Abandoned(Exception):
    """The session was not set up; carries how the attempt ends."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(str(ending))
        self.ending = ending
