"""Tools from a YAML, JSON or TOML file: `{type: file, path, namespace?, engine?}`."""

from pathlib import Path

from pydantic import Field

from engines.checked import checked
from engines.errors import ConfigurationInvalid, InvalidTool
from engines.loaders import ensembles
from engines.loaders.documents import read_document
from engines.loaders.entries import Entry, Surroundings
from engines.loaders.paths import path_of
from engines.loaders.shapes import tools_of
from engines.plain import JSONObject
from engines.tool import Tool


class FileEntry(Entry):
    """A file of tools; a relative path starts at the recipe's folder."""

    path: str = Field(min_length=1)


def load(entry: JSONObject, surroundings: Surroundings) -> list[Tool]:
    """Read the file's tools; ConfigurationInvalid stands at the entry's `path`. A TOML file may hold an ensemble."""
    settings = checked(FileEntry, entry, at=surroundings.at)
    at = (*surroundings.at, "path")

    def leave_out(path: Path, error: InvalidTool) -> None:
        surroundings.leave_out(ConfigurationInvalid(f"{path}: {error}", at=at))

    try:
        path = path_of(settings.path, surroundings)
        document = read_document(path)
    except InvalidTool as error:
        raise ConfigurationInvalid(str(error), at=at) from error
    try:
        if ensembles.is_ensemble(path, document):
            return ensembles.tools_of(document, path, namespace=settings.namespace, leave_out=leave_out)
        return tools_of(document, namespace=settings.namespace, leave_out=lambda error: leave_out(path, error))
    except InvalidTool as error:
        raise ConfigurationInvalid(f"{path}: {error}", at=at) from error
