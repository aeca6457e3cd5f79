"""Whether a job is to stop: asked by conversations inside a tool's call, where nobody stands at each message."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


def _never() -> bool:
    return False


_asked: ContextVar[Callable[[], bool]] = ContextVar("is_stopped", default=_never)


@contextmanager
def stopping_when(is_stopped: Callable[[], bool]) -> Iterator[None]:
    """Let the conversations that begin inside end at their next message once this is so."""
    token = _asked.set(is_stopped)
    try:
        yield
    finally:
        _asked.reset(token)


def is_stopped() -> bool:
    """Whether the job around is to stop."""
    return _asked.get()()
