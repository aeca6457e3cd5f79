"""Which exit code and which message a failure gets; what is not listed here is a bug and keeps its traceback."""

from conversations.errors import ConversationError
from engines.errors import ConfigurationInvalid, InvalidTool
from jobs.errors import BrokerUnreachable, InputCorrupt, JobsError, RunConflict, RunUnknown
from producer.errors import (
    DependencyUnreachable,
    InputInvalid,
    Interrupted,
    ProducerError,
    RunLocked,
    UsageInvalid,
)
from producer.exit_codes import ExitCode
from results.errors import InvalidKey, NotFound, ResultsError, StoreRefused, StoreUnavailable

# The first row whose kind fits decides.
_CODES: tuple[tuple[type[Exception], ExitCode], ...] = (
    (UsageInvalid, ExitCode.USAGE),
    (InvalidKey, ExitCode.USAGE),
    (InputInvalid, ExitCode.INVALID),
    (RunLocked, ExitCode.INVALID),
    (DependencyUnreachable, ExitCode.UNREACHABLE),
    (Interrupted, ExitCode.INTERRUPTED),
    (BrokerUnreachable, ExitCode.UNREACHABLE),
    (StoreUnavailable, ExitCode.UNREACHABLE),
    (StoreRefused, ExitCode.UNREACHABLE),
    (ConfigurationInvalid, ExitCode.INVALID),
    (InvalidTool, ExitCode.INVALID),
    (ConversationError, ExitCode.INVALID),
    (RunConflict, ExitCode.INVALID),
    (RunUnknown, ExitCode.INVALID),
    (InputCorrupt, ExitCode.INVALID),
    (NotFound, ExitCode.INVALID),
    (ProducerError, ExitCode.INTERNAL),
    (JobsError, ExitCode.INTERNAL),
    (ResultsError, ExitCode.INTERNAL),
)


def exit_code_of(error: Exception) -> ExitCode | None:
    """The exit code of a failure that has an answer; None for a bug."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), None)


def message_of(error: Exception) -> str:
    """What is said on stderr."""
    return str(error) if isinstance(error, Interrupted) else f"parley: {error}"
