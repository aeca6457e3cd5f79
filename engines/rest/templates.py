"""`{{ name }}` in a recipe's requests, put in as it is: no expressions, and what a value holds is never read again."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from engines.nearest import hint
from engines.rest.styles import scalar

_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_ANY_BRACES = re.compile(r"\{\{|\}\}")


def names_in(template: Any) -> Iterator[str]:
    """Every name that a template (text, or JSON with texts in it) asks for; ValueError for braces that name nothing."""
    match template:
        case str():
            if _ANY_BRACES.search(_PLACEHOLDER.sub("", template)):
                raise ValueError(f"{template!r}: write {{{{ name }}}}, nothing else stands in double braces")
            yield from _PLACEHOLDER.findall(template)
        case dict():
            for key, value in template.items():
                yield from names_in(key)
                yield from names_in(value)
        case list() | tuple():
            for value in template:
                yield from names_in(value)


def check_names(template: Any, known: Collection[str]) -> None:
    """ValueError for a name that nothing gives a value to."""
    for name in names_in(template):
        if name not in known:
            raise ValueError(f"nothing gives a value to {{{{ {name} }}}}; {hint(name, known)}")


def filled_text(template: str, values: Mapping[str, Any]) -> str:
    """Return the text with the values in it."""
    return _PLACEHOLDER.sub(lambda match: scalar(values[match[1]]), template)


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Return JSON with the values in it; a text that is one placeholder and nothing else becomes the value itself."""
    match template:
        case str():
            whole = _PLACEHOLDER.fullmatch(template)
            return values[whole[1]] if whole else filled_text(template, values)
        case dict():
            return {filled_text(key, values): filled(value, values) for key, value in template.items()}
        case list() | tuple():
            return [filled(value, values) for value in template]
        case _:
            return template


def as_path_template(template: str) -> str:
    """Return `/sessions/{{ id }}` as `/sessions/{id}`."""
    return _PLACEHOLDER.sub(r"{\1}", template)
