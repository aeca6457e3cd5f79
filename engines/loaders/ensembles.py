"""Tools from TOML ensembles: `{type: ensemble, path, namespace?, engine?}`; a folder means every ensemble in it.

An ensemble is a namespace: its descriptor lists invokers (tools), each in a file of its own or in place (E4, E7, E8).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from engines.checked import Model, checked
from engines.errors import ConfigurationInvalid, InvalidTool, SettingsInvalid
from engines.loaders.documents import read_document
from engines.loaders.entries import Entry, Surroundings
from engines.loaders.paths import path_of
from engines.name_patterns import EVERY_TOOL
from engines.plain import JSONObject
from engines.tool import Tool
from engines.tool_settings import ENABLED, ENSEMBLE_DEFAULTS
from engines.toolset import ToolDefaults

SUFFIX = ".toml"
LeaveOut = Callable[[Path, InvalidTool], None]


class EnsembleEntry(Entry):
    """One descriptor, or a folder of them; a relative path starts at the recipe's folder."""

    path: str = Field(min_length=1)


class Defaults(BaseModel):
    """`[defaults]`: how calls are run (rule E10); `timeout` is in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    timeout_seconds: float | None = Field(default=None, validation_alias=AliasChoices("timeout_seconds", "timeout"))
    max_retries: int | None = None
    on_error: str | None = None
    max_result_chars: int | None = None

    @model_validator(mode="after")
    def _can_be_used(self) -> Self:
        ToolDefaults.model_validate(self.said())
        return self

    def said(self) -> JSONObject:
        """Return what the file says, and nothing else."""
        return self.model_dump(exclude_none=True)


class InvokerHead(BaseModel):
    """`[invoker]`: the tool itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    enabled: bool = True
    description: str = ""


class InvokerFile(BaseModel):
    """A file for one invoker: `[arguments]` and `[returns]` are JSON Schemas."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    invoker: InvokerHead
    arguments: JSONObject | None = None
    returns: JSONObject | None = None
    defaults: Defaults = Defaults()
    metadata: JSONObject = Field(default_factory=dict)


class Invoker(BaseModel):
    """`[[invokers]]`: a `source` file, whose keys those beside it override, or the whole tool in place."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str | None = Field(default=None, min_length=1)
    name: str | None = Field(default=None, min_length=1)
    enabled: bool | None = None
    description: str | None = None
    arguments: JSONObject | None = None
    returns: JSONObject | None = None
    defaults: Defaults = Defaults()
    metadata: JSONObject = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if self.source is None and self.name is None:
            raise ValueError("an invoker needs a `source`, or a `name` of its own")
        return self

    def over(self, file: InvokerFile | None) -> InvokerFile:
        """Return this invoker whole: what it says, then what its file says."""
        head = InvokerHead(name=self.name or "?") if file is None else file.invoker
        said: dict[str, Any] = {"name": self.name, "enabled": self.enabled, "description": self.description}
        below = file or InvokerFile(invoker=head)
        return InvokerFile(
            invoker=head.model_copy(update={key: value for key, value in said.items() if value is not None}),
            arguments=self.arguments if self.arguments is not None else below.arguments,
            returns=self.returns if self.returns is not None else below.returns,
            defaults=Defaults(**{**below.defaults.said(), **self.defaults.said()}),
            metadata={**below.metadata, **self.metadata},
        )


class EnsembleHead(BaseModel):
    """`[ensemble]`: its name is the namespace."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    enabled: bool = True
    description: str = ""


class EnsembleFile(BaseModel):
    """A descriptor."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ensemble: EnsembleHead
    defaults: Defaults = Defaults()
    invokers: tuple[Invoker, ...] = ()


def load(entry: JSONObject, surroundings: Surroundings) -> list[Tool]:
    """Read the descriptors; ConfigurationInvalid, at the entry's `path`, names file, key and cause."""
    settings = checked(EnsembleEntry, entry, at=surroundings.at)
    at = (*surroundings.at, "path")

    def leave_out(path: Path, error: InvalidTool) -> None:
        surroundings.leave_out(ConfigurationInvalid(f"{path}: {error}", at=at))

    try:
        paths = _descriptors(path_of(settings.path, surroundings))
        documents = {path: read_document(path) for path in paths}
    except InvalidTool as error:
        raise ConfigurationInvalid(str(error), at=at) from error
    tools = []
    for path, document in documents.items():
        try:
            tools += tools_of(document, path, namespace=settings.namespace, leave_out=leave_out)
        except InvalidTool as error:
            leave_out(path, error)
    return tools


def is_ensemble(path: Path, document: Any) -> bool:
    """Whether a file of tools is a descriptor of an ensemble."""
    return path.suffix.lower() == SUFFIX and isinstance(document, dict) and "ensemble" in document


def tools_of(document: Any, path: Path, *, namespace: str | None, leave_out: LeaveOut) -> list[Tool]:
    """Read a descriptor's tools into `namespace`, else into that of the ensemble's name.

    Of a disabled ensemble no invoker is read: it is one tool that stands for all of them and is switched off (E9).
    """
    ensemble = _read(EnsembleFile, document)
    own = namespace or ensemble.ensemble.name
    if not ensemble.ensemble.enabled:
        return [Tool(EVERY_TOOL, own, metadata={ENABLED: False})]
    tools = []
    for index, invoker in enumerate(ensemble.invokers):
        try:
            tools.append(_tool_of(invoker, ensemble, own, path))
        except InvalidTool as error:
            leave_out(path, InvalidTool(f"invokers[{index}]: {error}"))
    return tools


def _tool_of(invoker: Invoker, ensemble: EnsembleFile, namespace: str, path: Path) -> Tool:
    file = None if invoker.source is None else _invoker_file(path, invoker.source)
    whole = invoker.over(file)
    metadata = dict(whole.metadata)
    if not whole.invoker.enabled:
        metadata[ENABLED] = False
    if whole.defaults.said():
        metadata["defaults"] = {**metadata.get("defaults", {}), **whole.defaults.said()}
    if ensemble.defaults.said():
        metadata[ENSEMBLE_DEFAULTS] = ensemble.defaults.said()
    definition = {
        "name": whole.invoker.name,
        "description": whole.invoker.description,
        "parameters": whole.arguments,
        "output_parameters": whole.returns,
        "metadata": metadata,
    }
    return Tool.from_dict(definition, namespace=namespace)


def _invoker_file(descriptor: Path, source: str) -> InvokerFile:
    """Read a source, which lies in the descriptor's folder or below it."""
    folder = descriptor.parent.resolve()
    path = (folder / source).resolve()
    if not path.is_relative_to(folder) or path.suffix.lower() != SUFFIX:
        raise InvalidTool(f"source {source!r}: a source is a {SUFFIX} file in {folder} or below it")
    document = read_document(path)
    try:
        return _read(InvokerFile, document)
    except InvalidTool as error:
        raise InvalidTool(f"{source}: {error}") from error


def _descriptors(path: Path) -> list[Path]:
    if not path.is_dir():
        if path.suffix.lower() != SUFFIX:
            raise InvalidTool(f"{path}: an ensemble is a {SUFFIX} file, or a folder of them")
        return [path]
    found = sorted(path.glob(f"*{SUFFIX}"))
    if not found:
        raise InvalidTool(f"{path}: no {SUFFIX} file in this folder; an ensemble is one")
    return found


def _read(model: type[Model], document: Any) -> Model:
    """Check a document of a file; InvalidTool tells place and cause inside the file."""
    try:
        return checked(model, document, at=())
    except SettingsInvalid as error:
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.at).removeprefix(".")
        raise InvalidTool(f"{place}: {error.message}" if place else error.message) from error
