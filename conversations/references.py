"""References in a recipe, `${VAR}`, `${VAR:-default}`, `file:/path`: found at submit, resolved late, never stored."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conversations.errors import RecipeInvalid
from conversations.places import Place, written

FILE_PREFIX = "file:"
MOST_FILE_BYTES = 64 << 10

# A default holds no other reference: looking for its end beyond the next one would take quadratic time (rule S16).
_TOKEN = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>(?:[^}$]|\$(?!\{))*+))?\}|\$\{")
_ESCAPED, _OPENING = "$${", "${"
BROKEN = "`${` begins no reference"
SPELLING = "write ${NAME} or ${NAME:-default}, and $${ for the characters themselves"


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference: where it stands and what it names; `default` is None when it must be set."""

    at: Place
    kind: str  # "variable" or "file"
    name: str
    default: str | None = None


def references_in(data: Any, at: Place = ()) -> Iterator[Reference]:
    """Every reference below `data`."""
    for place, text in _texts(data, at):
        if text.startswith(FILE_PREFIX):
            yield Reference(place, "file", text.removeprefix(FILE_PREFIX))
        else:
            for match in _TOKEN.finditer(text):
                if match["name"]:
                    yield Reference(place, "variable", match["name"], match["default"])


def broken_references_in(data: Any, at: Place = ()) -> Iterator[Place]:
    """Where a `${` stands that begins no reference."""
    for place, text in _texts(data, at):
        if not text.startswith(FILE_PREFIX) and any(match[0] == _OPENING for match in _TOKEN.finditer(text)):
            yield place


def resolve_references(
    data: Any, environment: Mapping[str, str], read_file: Callable[[str], str] | None = None, *, at: Place = ()
) -> Any:
    """A copy of `data` with every reference replaced by its value; what a value holds is not resolved again.

    A variable that is empty counts as not set, as in a shell. RecipeInvalid names the reference and its place, never a
    value. Tool definitions (`tools` of an inline registry entry) are data and stay as they are.
    """
    read = read_reference_file if read_file is None else read_file
    if isinstance(data, dict):
        return {
            key: value if _is_definitions(data, key) else resolve_references(value, environment, read, at=(*at, key))
            for key, value in data.items()
        }
    if isinstance(data, list | tuple):
        return [resolve_references(item, environment, read, at=(*at, index)) for index, item in enumerate(data)]
    if isinstance(data, str):
        return _resolved_text(data, environment, read, at)
    return data


def has_reference(data: Any) -> bool:
    """Whether the value is not known before its references are resolved."""
    return any(text.startswith(FILE_PREFIX) or "${" in text for _, text in _texts(data, ()))


def read_reference_file(path: str) -> str:
    """A small text file such as a mounted secret, without the newline at its end."""
    with Path(path).expanduser().open("rb") as file:
        content = file.read(MOST_FILE_BYTES + 1)
    if len(content) > MOST_FILE_BYTES:
        raise ValueError(f"longer than {MOST_FILE_BYTES} bytes")
    return content.decode().rstrip("\r\n")


def _resolved_text(text: str, environment: Mapping[str, str], read: Callable[[str], str], at: Place) -> str:
    if text.startswith(FILE_PREFIX):
        path = text.removeprefix(FILE_PREFIX)
        try:
            return read(path)
        except (OSError, ValueError) as error:
            cause = error.strerror if isinstance(error, OSError) and error.strerror else _cause(error)
            raise RecipeInvalid(f"{written(at)}: cannot read the file {path!r}: {cause}") from None

    def value_of(match: re.Match[str]) -> str:
        if match[0] == _ESCAPED:
            return "${"
        if match["name"] is None:
            raise RecipeInvalid(f"{written(at)}: {BROKEN}", hint=SPELLING)
        value = environment.get(match["name"]) or match["default"]
        if value is None:
            message = f"{written(at)}: the variable {match['name']} is not set"
            raise RecipeInvalid(message, hint=f"set {match['name']} where the workers run")
        return value

    return _TOKEN.sub(value_of, text)


def _cause(error: Exception) -> str:
    return "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)


def _texts(data: Any, at: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(data, str):
        yield at, data
    elif isinstance(data, dict):
        for key, value in data.items():
            if not _is_definitions(data, key):
                yield from _texts(value, (*at, key))
    elif isinstance(data, list | tuple):
        for index, value in enumerate(data):
            yield from _texts(value, (*at, index))


def _is_definitions(data: Mapping[str, Any], key: str) -> bool:
    """Tool definitions are data: a description may say `${HOME}` and mean just that."""
    return key == "tools" and data.get("type") == "inline"
