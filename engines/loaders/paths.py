"""Paths in registry entries: relative to the recipe's folder, with the environment's variables put in (rule D72)."""

import re
from collections.abc import Mapping
from pathlib import Path

from engines.errors import InvalidTool
from engines.loaders.entries import Surroundings

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def path_of(written: str, surroundings: Surroundings) -> Path:
    """Return the path that an entry means; InvalidTool for a variable that is not set."""
    return surroundings.folder / Path(_expanded(written, surroundings.environment))


def _expanded(path: str, environment: Mapping[str, str]) -> str:
    """Put the values of `${NAME}` and `$NAME` in."""

    def value_of(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in environment:
            raise InvalidTool(f"{path!r}: the variable {name} is not set; set it, or write the path out")
        return environment[name]

    return _VARIABLE.sub(value_of, path)
