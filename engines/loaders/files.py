"""Tools from a YAML or JSON file: `{type: file, path, namespace?, engine?}`."""

import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from engines.checked import checked
from engines.errors import ConfigurationInvalid, InvalidTool
from engines.loaders.documents import read_document
from engines.loaders.entries import Entry, Surroundings
from engines.loaders.shapes import tools_of
from engines.plain import JSONObject
from engines.tool import Tool

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class FileEntry(Entry):
    """A file of tools; a relative path starts at the recipe's folder."""

    path: str = Field(min_length=1)


def load(entry: JSONObject, surroundings: Surroundings) -> list[Tool]:
    """Read the file's tools; ConfigurationInvalid stands at the entry's `path`."""
    settings = checked(FileEntry, entry, at=surroundings.at)
    try:
        path = surroundings.folder / Path(_expanded(settings.path, surroundings.environment))
        document = read_document(path)
        try:
            return tools_of(document, namespace=settings.namespace)
        except InvalidTool as error:
            raise InvalidTool(f"{path}: {error}") from error
    except InvalidTool as error:
        raise ConfigurationInvalid(str(error), at=(*surroundings.at, "path")) from error


def _expanded(path: str, environment: Mapping[str, str]) -> str:
    """Put the values of `${NAME}` and `$NAME` in (rule D72)."""

    def value_of(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in environment:
            raise InvalidTool(f"{path!r}: the variable {name} is not set; set it, or write the path out")
        return environment[name]

    return _VARIABLE.sub(value_of, path)
