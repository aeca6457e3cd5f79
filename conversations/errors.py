"""What a conversation cannot answer by itself: invalid recipes, failing models, misuse of the loop."""

from typing import ClassVar


class ConversationError(Exception):
    """Root of everything this floor raises."""


class RecipeInvalid(ConversationError, ValueError):
    """A recipe that cannot be used; says where, why and the way out (decision 11)."""

    def __init__(self, message: str, *, file: str = "", line: int = 0, column: int = 0, hint: str = "") -> None:
        """Lines and columns count from 1; 0 means that the place is not known."""
        self.file, self.line, self.column, self.message, self.hint = file, line, column, message, hint
        self.others: tuple[RecipeInvalid, ...] = ()  # further errors of the same file
        super().__init__(message)

    def __str__(self) -> str:
        """`file:line:column: message; hint`, without the parts that are not known; one line for each error."""
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        said = f"{self.message}; {self.hint}" if self.hint else self.message
        return "\n".join([f"{place}: {said}" if place else said, *map(str, self.others)])


class TemplateInvalid(ConversationError, ValueError):
    """A text with `{{ }}` that cannot be filled in."""


class HistoryInvalid(ConversationError, ValueError):
    """Messages that no provider would accept, handed in by a caller."""


class ToolChoiceInvalid(ConversationError, ValueError):
    """A job's `tool_choice` that names no tool it is offered."""


class ToolsInvalid(ConversationError, ValueError):
    """Tools that cannot be offered: one twice, or one that is not known."""


class ParametersInvalid(ConversationError, ValueError):
    """Parameters that no request to a model may carry."""


class CheckpointUnusable(ConversationError, ValueError):
    """Bytes that are no checkpoint of this version, or damaged, or out of order (rule F38)."""


class RunnerUsed(ConversationError, RuntimeError):
    """A runner was iterated a second time (rule A15)."""


class ModelError(ConversationError):
    """A model call that gave no usable reply; `type` is the snake_case name that records carry."""

    default_type: ClassVar[str] = "model_error"
    default_retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        type: str | None = None,  # noqa: A002 (the field of the record)
        retryable: bool | None = None,
        retry_after_seconds: float | None = None,
        status: int | None = None,
        body: str = "",
    ) -> None:
        """`body` is what the server said, for debugging: never part of the message, never logged above debug."""
        super().__init__(message)
        self.message = message
        self.type = self.default_type if type is None else type
        self.retryable = self.default_retryable if retryable is None else retryable
        self.retry_after_seconds, self.status, self.body = retry_after_seconds, status, body


class ModelUnavailable(ModelError):
    """No connection, a broken one, or a 5xx."""

    default_type = "model_unavailable"
    default_retryable = True


class ModelTimeout(ModelError):
    """No reply within the call's time."""

    default_type = "model_timeout"
    default_retryable = True


class RateLimited(ModelError):
    """429; `retry_after_seconds` when the server said so."""

    default_type = "rate_limited"
    default_retryable = True


class MalformedReply(ModelError):
    """A reply that is not what the protocol promises; worth a bounded number of further tries."""

    default_type = "malformed_reply"
    default_retryable = True


class ModelRefusedRequest(ModelError):
    """A 4xx that will stay one."""

    default_type = "model_refused_request"


class AuthenticationFailed(ModelError):
    """401 or 403: the key is missing, wrong or not allowed to use this model."""

    default_type = "authentication_failed"


class ContextOverflow(ModelError):
    """The history no longer fits the model's context window."""

    default_type = "context_overflow"
