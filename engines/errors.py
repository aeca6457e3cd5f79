"""What this floor raises: each message names the thing, the cause and the way out."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engines.tool import ErrorType, ToolResult

Place = tuple[str | int, ...]


class EngineError(Exception):
    """Anything this floor cannot answer by itself."""


class InvalidTool(EngineError, ValueError):
    """A tool definition, call or result that cannot be read."""


class DuplicateTool(EngineError, ValueError):
    """The same tool (namespace, name and parameters) is defined twice."""


class SessionStateInvalid(EngineError, ValueError):
    """A session's state is not plain JSON, or is not a state that `get_session_state` gave."""


class ConfigurationInvalid(EngineError, ValueError):
    """The `tools:` block cannot be used as written; `at` is the path inside the block, `message` says why."""

    def __init__(self, message: str, *, at: Place = ()) -> None:
        super().__init__(message)
        self.message = message
        self.at = at

    def __str__(self) -> str:
        """`tools.registry[2].engine: why`."""
        return f"{written(self.at)}: {self.message}" if self.at else self.message


class SettingsInvalid(ConfigurationInvalid):
    """What is written breaks the form: an unknown or missing key, a wrong type. Never forgiven, also where optional."""


class DuplicateDefinition(ConfigurationInvalid, DuplicateTool):
    """Two registry entries, or one, define the same tool."""


class UnknownEngine(ConfigurationInvalid):
    """A registry entry names an engine that the `engines:` block does not define."""


class ToolFailed(EngineError):
    """A call failed in a way the engine knows; it becomes the call's error result.

    A failure that `may_pass` is worth another try of a tool that may be asked twice: unless it is said, a transport
    error is. `retry_after_seconds` is how long the backend asked to be left alone (RFC 9110, Retry-After).
    """

    def __init__(
        self,
        error_type: "ErrorType",
        message: str,
        *,
        may_pass: bool | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.message = message
        self.may_pass = may_pass
        self.retry_after_seconds = retry_after_seconds


class SessionLost(EngineError):
    """What a backend kept for a session is gone: the job starts a new attempt, which restores or fails as configured.

    Never answered by a fresh session in silence: the conversation would go on in a world that forgot what it did.
    """

    def __init__(self, namespace: str, session_id: str, cause: str) -> None:
        super().__init__(f"the session {session_id!r} on the backend of {namespace!r} is lost: {cause}")
        self.namespace = namespace
        self.session_id = session_id
        self.cause = cause


class TurnAborted(EngineError):
    """A call failed in a toolset that says `on_error: raise`; the conversation goes back to before the turn."""

    def __init__(self, result: "ToolResult") -> None:
        super().__init__(f"{result.name}: {result.error} (its toolset says on_error: raise)")
        self.result = result


def written(place: Place) -> str:
    """Return a path inside the tools block as people write it: `tools.registry[2].engine`."""
    return "tools" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
