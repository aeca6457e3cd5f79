"""Which headers a call's arguments may fill, and with what (rule D54)."""

import re

from engines.errors import InvalidTool, ToolFailed
from engines.network.headers import header_problem, is_for_configuration_only
from engines.tool import ErrorType

# What says how the body is to be read, or asks a server to take the request for another one.
_NEVER = frozenset(
    {
        "content-encoding",
        "content-type",
        "origin",
        "set-cookie",
        "x-http-method",
        "x-http-method-override",
        "x-method-override",
        "x-original-url",
        "x-rewrite-url",
    }
)
_MEDIA_TYPE = re.compile(r"[\x21-\x7e]+(?: *; *[\x21-\x7e]+)*")


def checked_header(name: str, value: str) -> str:
    """Return the value; ToolFailed when HTTP cannot carry it (a line end would make a header of its own)."""
    if problem := header_problem(name, value):
        raise ToolFailed(ErrorType.validation, problem)
    return value


def may_come_from_arguments(name: str) -> bool:
    """Whether a model may say the header; the loader offers no argument for one that it may not."""
    return name.lower() not in _NEVER and not is_for_configuration_only(name)


def checked_argument_header(name: str, value: str) -> str:
    """Return a value that a model gave; ToolFailed (permission) for a header that is not the model's to say."""
    if not may_come_from_arguments(name):
        message = f"the header {name!r} is never taken from arguments; leave it out"
        raise ToolFailed(ErrorType.permission, message)
    return checked_header(name, value)


def check_header_name(name: str) -> None:
    """InvalidTool when a document names a header that HTTP cannot carry."""
    if problem := header_problem(name, "") if not is_for_configuration_only(name) else None:
        raise InvalidTool(problem)


def check_media_type(kind: str) -> None:
    """InvalidTool for a media type that would not stay inside its header."""
    if not _MEDIA_TYPE.fullmatch(kind):
        raise InvalidTool(f"{kind[:60]!r} is no media type")
