"""Fills a text with a job's variables: jinja2 in its sandbox, where a missing variable is an error."""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from conversations.errors import TemplateInvalid

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import SandboxedEnvironment

TEMPLATES_KEPT = 1024
CHARACTERS_SHOWN = 60
_MARKS = ("{{", "{%", "{#")


def is_template(text: str) -> bool:
    """Whether rendering could change the text."""
    return any(mark in text for mark in _MARKS)


def render(text: str, variables: Mapping[str, Any]) -> str:
    """The text with its variables filled in; text without `{{`, `{%` or `{#` comes back as it is.

    Variables are data: what they hold is never rendered again. TemplateInvalid for a syntax error, a variable that is
    missing and for what the sandbox forbids.
    """
    if not is_template(text):
        return text
    from jinja2 import TemplateError  # noqa: PLC0415 (0.1 s, and most texts are no templates)

    try:
        return _compiled(text).render(variables)
    except TemplateError as error:
        raise TemplateInvalid(f"template {_shown(text)}: {error}; a job's `variables` fill it in") from error
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise TemplateInvalid(f"template {_shown(text)}: {type(error).__name__}: {error}") from error


def _shown(text: str) -> str:
    return repr(text if len(text) <= CHARACTERS_SHOWN else f"{text[:CHARACTERS_SHOWN]}…")


@lru_cache(maxsize=TEMPLATES_KEPT)
def _compiled(text: str) -> "Template":
    return _environment().from_string(text)


@cache
def _environment() -> "SandboxedEnvironment":
    from jinja2 import StrictUndefined  # noqa: PLC0415
    from jinja2.sandbox import SandboxedEnvironment  # noqa: PLC0415

    return SandboxedEnvironment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
