"""Names: of a tool by its operation (rule D50), of an argument by its parameter, of a schema under `$defs`."""

import re
from collections.abc import Container

_MOST_CHARS = 64  # What providers take as the name of an argument.
_UNUSUAL_IN_ARGUMENT = re.compile(r"[^A-Za-z0-9_.-]+")
_UNUSUAL_IN_SLUG = re.compile(r"[^A-Za-z0-9_-]+")
_UNSPEAKABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202f\u2066-\u2069]+|::+")


def tool_name(operation_id: str | None, method: str, path: str) -> str:
    """Return the operation's id, as it is but for white space, control characters and `::`; else `get_pets_petId`."""
    written = operation_id or ""
    name = _UNSPEAKABLE.sub("_", written).strip("_") if _UNSPEAKABLE.search(written) else written
    if name:
        return name
    slug = _UNUSUAL_IN_SLUG.sub("_", path.replace("{", "").replace("}", "")).strip("_")
    return f"{method.lower()}_{slug}" if slug else method.lower()


def argument_name(name: str, location: str, taken: Container[str]) -> str:
    """Return a name that providers take: `filter[age]` → `filter_age`; `body_id` where `id` is taken."""
    plain = _UNUSUAL_IN_ARGUMENT.sub("_", name).strip("_")[:_MOST_CHARS] or location
    if name[:_MOST_CHARS] == name and not _UNUSUAL_IN_ARGUMENT.search(name):
        plain = name  # A leading underscore is part of the name.
    return unique(plain if plain not in taken else f"{location}_{plain}", taken)


def unique(name: str, taken: Container[str]) -> str:
    """Return the name, with `_2`, `_3` … when it is taken."""
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def definition_name(reference: str, taken: Container[str]) -> str:
    """Return the last step of a reference, fit for `#/$defs/…`."""
    return unique(_UNUSUAL_IN_SLUG.sub("_", reference.rpartition("/")[2])[:_MOST_CHARS] or "schema", taken)
