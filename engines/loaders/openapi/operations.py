"""The operations of a document, each made a tool (rules D48, D50, D51)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engines.errors import InvalidTool
from engines.loaders.openapi.arguments import Arguments
from engines.loaders.openapi.bodies import add_body
from engines.loaders.openapi.metadata import RestOperation
from engines.loaders.openapi.naming import tool_name, unique
from engines.loaders.openapi.parameters import add_parameters, merged_parameters
from engines.loaders.openapi.references import Document
from engines.loaders.openapi.responses import accepted, output_schema
from engines.loaders.openapi.schemas import Translation
from engines.loaders.openapi.security import SecuritySchemes
from engines.loaders.openapi.servers import Whereabouts
from engines.loaders.openapi.swagger import upgraded_operation
from engines.loaders.openapi.texts import MOST_CHARS_OF_A_TOOL, description
from engines.plain import JSONObject
from engines.schemas import checked_schema
from engines.tool import Tool

_METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path, as the document has it."""

    name: str
    """Its tool's, alone in the document."""

    operation_id: str | None
    method: str
    path: str
    path_item: JSONObject
    written: JSONObject

    @property
    def place(self) -> str:
        """How a message names it: `GET /pets/{petId}`."""
        return f"{self.method} {self.path}"

    @property
    def tags(self) -> list[str]:
        """The document's words for the group it is in."""
        written = self.written.get("tags")
        return [tag for tag in written if isinstance(tag, str)] if isinstance(written, list) else []


def operations_of(document: Document) -> list[Operation]:
    """Return every operation in the document's order; two of one name become `name` and `name_2`."""
    found: list[Operation] = []
    names: set[str] = set()
    for path, path_item, method, written in _written(document):
        operation_id = written.get("operationId")
        if not isinstance(operation_id, str) or not operation_id:
            operation_id = None
        name = unique(tool_name(operation_id, method, path), names)
        names.add(name)
        found.append(Operation(name, operation_id, method.upper(), path, path_item, written))
    return found


@dataclass(frozen=True, slots=True)
class ToolMaker:
    """Makes tools of one document's operations."""

    document: Document
    whereabouts: Whereabouts
    namespace: str
    security: SecuritySchemes

    def tool(self, operation: Operation) -> Tool:
        """Return the operation's tool; InvalidTool, naming the operation, when the document is unsound there."""
        try:
            return self._tool(operation)
        except InvalidTool as error:
            raise InvalidTool(f"{operation.place}: {error}") from error
        except RecursionError as error:
            raise InvalidTool(f"{operation.place}: nested too deeply") from error

    def _tool(self, operation: Operation) -> Tool:
        document = self.document
        path_item, written = operation.path_item, operation.written
        if "swagger" in document.root:
            path_item, written = upgraded_operation(path_item, written, document)
        arguments = Arguments()
        translation = Translation(document, "request")
        parameters = merged_parameters(path_item, written, document)
        add_parameters(parameters, operation.path, arguments, translation, self.security)
        body = add_body(written, operation.method, arguments, translation, document)
        base = self.whereabouts.of(written.get("servers") or path_item.get("servers") or document.root.get("servers"))
        described = RestOperation(
            method=operation.method,
            path=operation.path,
            base_url=base.url,
            base_from=base.named_by,
            parameters=arguments.parameters,
            body=body,
            accept=accepted(written, document),
            security=self.security.of_operation(written),
        )
        tool = Tool(
            name=operation.name,
            namespace=self.namespace,
            description=_description(operation),
            parameters=translation.completed(arguments.schema()),
            output_parameters=output_schema(written, document),
            metadata=described.to_metadata() | _notes(operation),
        )
        checked_schema(tool.parameters, of="parameters")
        if tool.output_parameters is not None:
            checked_schema(tool.output_parameters, of="response")
        return tool


def _written(document: Document) -> Iterator[tuple[str, JSONObject, str, JSONObject]]:
    paths = document.root.get("paths")
    for path, reference in (paths if isinstance(paths, dict) else {}).items():
        if not path.startswith("/"):
            continue  # Extensions (`x-…`): a path begins with a slash.
        try:
            path_item = document.resolved(reference)
        except InvalidTool as error:
            raise InvalidTool(f"paths.{path}: {error}") from error
        for method in _METHODS:
            written = path_item.get(method) if isinstance(path_item, dict) else None
            if isinstance(written, dict):
                yield path, path_item, method, written


def _description(operation: Operation) -> str:
    """Return the summary and the description, or at least what is requested."""
    written = operation.written
    text = description(written.get("summary"), written.get("description"), most_chars=MOST_CHARS_OF_A_TOOL)
    return text or operation.place


def _notes(operation: Operation) -> JSONObject:
    notes: dict[str, Any] = {}
    if operation.operation_id is not None:
        notes["rest_operation_id"] = operation.operation_id
    if operation.tags:
        notes["rest_tags"] = operation.tags
    if operation.written.get("deprecated") is True:
        notes["deprecated"] = True
    return notes
