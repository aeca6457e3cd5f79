"""Tools of an HTTP API by its description: `{type: openapi, spec: petstore.yaml or a URL, base_url?, …}`."""

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field

from engines.checked import checked
from engines.errors import ConfigurationInvalid, InvalidTool, Place
from engines.loaders.documents import MAX_BYTES, document_of, read_document
from engines.loaders.entries import Entry, Surroundings
from engines.loaders.openapi.operations import Operation, ToolMaker, operations_of
from engines.loaders.openapi.references import Document
from engines.loaders.openapi.security import SecuritySchemes
from engines.loaders.openapi.servers import Whereabouts
from engines.loaders.openapi.swagger import upgraded_root
from engines.loaders.paths import path_of
from engines.nearest import hint
from engines.network.connection import ConnectionSettings
from engines.network.failures import NetworkFailure
from engines.plain import JSONObject
from engines.tool import DEFAULT_NAMESPACE, Tool

_SUFFIXES = (".yaml", ".yml", ".json")
_TIMEOUT_SECONDS = 10.0


class OpenAPIEntry(Entry, ConnectionSettings):
    """A description of an API (rule D47); a relative path starts at the recipe's folder.

    `url` (or `base_url`) is where the API is, over what the document says. The credentials are shown to the server that
    a remote `spec` is fetched from, to no other; those for the API's calls belong into the engine's settings.
    """

    spec: str = Field(min_length=1)
    operation_ids: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Load only these; None loads every operation."""

    tags: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Load only operations that have one of these tags."""


def load(entry: JSONObject, surroundings: Surroundings) -> list[Tool]:
    """Read the document and make a tool of each operation; ConfigurationInvalid stands at the key that is wrong."""
    at = surroundings.at
    _refuse_references_to_be_stored(entry, at)
    spec = entry.get("spec")
    source = surroundings.resolve({"spec": spec}, at)["spec"]
    if _is_url(source):
        entry = surroundings.resolve(entry, at)
    settings = checked(OpenAPIEntry, entry, at=at)
    try:
        root = _fetched(source, settings) if _is_url(source) else _read(source, surroundings)
        document = _document(root)
        operations = _chosen(operations_of(document), settings, at)
        maker = ToolMaker(
            document,
            # What a reference stands for is never stored, so no base URL is made of it.
            Whereabouts(settings.url, source if _is_url(source) and source == spec else None),
            settings.namespace or DEFAULT_NAMESPACE,
            SecuritySchemes(document),
        )
    except InvalidTool as error:
        raise ConfigurationInvalid(str(error), at=(*at, "spec")) from error
    tools = []
    for operation in operations:
        try:
            tools.append(maker.tool(operation))
        except InvalidTool as error:
            message = f"{error}; mend it, or name the operations to load under operation_ids"
            surroundings.leave_out(ConfigurationInvalid(message, at=(*at, "spec")))
    return tools


def _refuse_references_to_be_stored(entry: JSONObject, at: Place) -> None:
    for key in ("url", "base_url"):
        written = entry.get(key)
        if isinstance(written, str) and ("${" in written or written.startswith("file:")):
            message = (
                "this URL is stored with the tools, so it holds no reference; write it out, or use the engine's url"
            )
            raise ConfigurationInvalid(message, at=(*at, key))


def _is_url(source: Any) -> bool:
    return isinstance(source, str) and source.lower().startswith(("http://", "https://"))


def _read(source: str, surroundings: Surroundings) -> Any:
    path = path_of(source, surroundings)
    if path.suffix.lower() not in _SUFFIXES:
        raise InvalidTool(f"{path}: descriptions are {', '.join(_SUFFIXES)} files, not {path.suffix or 'this'!r}")
    return read_document(path)


def _fetched(url: str, settings: OpenAPIEntry) -> Any:
    """Fetch with the entry's credentials, which belong to the document's server here."""
    from engines.network.documents import fetch_document  # noqa: PLC0415 - brings in the HTTP client

    own: dict[str, Any] = {"url": url, "timeout": settings.timeout or _TIMEOUT_SECONDS}
    if "max_response_bytes" not in settings.model_fields_set:
        own["max_response_bytes"] = MAX_BYTES
    try:
        data, content_type = fetch_document(url, settings.model_copy(update=own))
    except NetworkFailure as error:
        raise InvalidTool(error.message) from error
    return document_of(data, source=urlsplit(url).path or "/", suffix=_suffix_of(url, content_type, data))


def _suffix_of(url: str, content_type: str | None, data: bytes) -> str:
    """Tell YAML from JSON: by the media type, else by the URL's own suffix, else by how it begins."""
    for told in (content_type or "", PurePosixPath(urlsplit(url).path).suffix):
        if "yaml" in told.lower() or told.lower() == ".yml":
            return ".yaml"
        if "json" in told.lower():
            return ".json"
    return ".json" if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else ".yaml"


def _document(root: Any) -> Document:
    """Check that it is a description of a version that is known."""
    if not isinstance(root, dict) or not ({"openapi", "swagger"} & root.keys()):
        raise InvalidTool("is no OpenAPI description: it has neither `openapi` nor `swagger` at its top")
    if "openapi" in root:
        if not str(root["openapi"]).startswith("3."):
            raise InvalidTool(f"OpenAPI {root['openapi']!r} is not known; known: 3.0, 3.1, and Swagger 2.0")
        return Document(root)
    if str(root["swagger"]) not in {"2.0", "2"}:
        raise InvalidTool(f"Swagger {root['swagger']!r} is not known; known: 2.0, and OpenAPI 3.0 and 3.1")
    return Document(upgraded_root(root))


def _chosen(operations: Sequence[Operation], settings: OpenAPIEntry, at: Place) -> list[Operation]:
    """Return the operations that the entry wants; an id is an `operationId`, or the tool's name where there is none."""
    if not operations:
        raise InvalidTool("describes no operations: there is no get, post, put, patch or delete under `paths`")
    chosen = list(operations)
    if settings.operation_ids is not None:
        known = {each.operation_id or each.name for each in operations} | {each.name for each in operations}
        _refuse_unknown(settings.operation_ids, known, "operation", (*at, "operation_ids"))
        wanted = set(settings.operation_ids)
        chosen = [each for each in chosen if each.operation_id in wanted or each.name in wanted]
    if settings.tags is not None:
        _refuse_unknown(settings.tags, {tag for each in operations for tag in each.tags}, "tag", (*at, "tags"))
        chosen = [each for each in chosen if set(settings.tags) & set(each.tags)]
    return chosen


def _refuse_unknown(wanted: Sequence[str], known: Collection[str], kind: str, at: Place) -> None:
    for index, name in enumerate(wanted):
        if name not in known:
            raise ConfigurationInvalid(f"no {kind} {name!r} in the description; {hint(name, known)}", at=(*at, index))
