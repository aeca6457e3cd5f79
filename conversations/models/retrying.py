"""A model that tries again: bounded tries, the server's own waiting time, jitter (faults F18, F20)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from random import Random

from conversations.errors import MalformedReply, ModelError
from conversations.models.model import Model, ModelReply, ModelRequest

SAME_FAILURE_LIMIT = 3
_MOST_DOUBLINGS = 32


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long one call may be repeated."""

    max_retries: int = 5
    first_wait_seconds: float = 0.5
    cap_seconds: float = 120.0
    total_wait_seconds: float = 900.0
    jitter: float = 0.25


def wait_seconds(policy: RetryPolicy, attempt: int, error: ModelError, chance: Random) -> float:
    """How long to wait after try number `attempt` (from 1) failed.

    The server's word counts, up to the cap, and is only ever lengthened: nobody comes before the time they were told,
    and all who were told the same time do not come together.
    """
    told = error.retry_after_seconds
    if told is not None:
        asked = min(told, policy.cap_seconds)
        return asked + chance.uniform(0, policy.jitter * max(1.0, asked))
    doubled = policy.first_wait_seconds * 2.0 ** min(attempt - 1, _MOST_DOUBLINGS)
    return min(doubled, policy.cap_seconds) * chance.uniform(1 - policy.jitter, 1 + policy.jitter)


class RetryingModel:
    """Wraps a model; a reply says how many attempts it took, and the last error goes through unchanged."""

    __slots__ = ("_chance", "_model", "_policy", "_sleep")

    def __init__(
        self,
        model: Model,
        policy: RetryPolicy,
        *,
        chance: Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`chance` draws the jitter."""
        self._model, self._policy, self._sleep = model, policy, sleep
        self._chance = Random() if chance is None else chance

    @property
    def model_id(self) -> str:
        """The inner model's."""
        return self._model.model_id

    async def open(self) -> None:
        """Open the inner model."""
        await self._model.open()

    async def close(self) -> None:
        """Close the inner model."""
        await self._model.close()

    async def ask(self, request: ModelRequest) -> ModelReply:
        """Ask until there is a reply, the error will not pass, or tries or waiting time are used up."""
        attempt, waited_seconds, same = 1, 0.0, 0
        last: tuple[str, str] | None = None
        while True:
            try:
                reply = await self._model.ask(request)
            except ModelError as error:
                same = same + 1 if _fingerprint(error) == last else 1
                last = _fingerprint(error)
                pause = wait_seconds(self._policy, attempt, error, self._chance)
                waited_seconds += pause
                if self._gives_up(error, attempt, same, waited_seconds):
                    raise
            else:
                return reply if attempt == 1 else replace(reply, attempts=attempt)
            attempt += 1
            await self._sleep(pause)

    def _gives_up(self, error: ModelError, attempt: int, same: int, waited_seconds: float) -> bool:
        """A reply that is malformed in the same way three times in a row is what this model has to say."""
        return (
            not error.retryable
            or attempt > self._policy.max_retries
            or waited_seconds > self._policy.total_wait_seconds
            or (isinstance(error, MalformedReply) and same >= SAME_FAILURE_LIMIT)
        )


def _fingerprint(error: ModelError) -> tuple[str, str]:
    return error.type, error.message
