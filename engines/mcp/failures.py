"""What goes wrong between a server and us, sorted and put into words that name the cause."""

from collections.abc import Iterator

from engines.errors import EngineError
from engines.mcp.text import printable

_CAUSE_CHARS = 500


class ServerUnreachable(EngineError):
    """No connection to a server: it does not answer, refuses, speaks something else, or its process ended."""


class ConnectionGone(EngineError):
    """A connection, or what the server kept for its session, is gone."""


def cause_of(error: BaseException) -> str:
    """Return what went wrong, in one line: the leaves of exception groups, each told once."""
    told = dict.fromkeys(_told(leaf) for leaf in _leaves(error))
    return printable("; ".join(told), _CAUSE_CHARS)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _told(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return text or type(error).__name__
