"""One operation of an API: the arguments of a call become a request, whole and inside the operation's own path."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from engines.errors import InvalidTool, ToolFailed
from engines.loaders.openapi.metadata import RestBody, RestOperation, RestParameter
from engines.plain import JSONObject
from engines.rest.bodies import Content, content_of_fields, content_of_value
from engines.rest.header_rules import check_header_name, check_media_type
from engines.rest.path import PathTemplate
from engines.rest.placing import Placing
from engines.rest.supplied import NOT_RESERVED, NOTHING, Reserved, Supplied
from engines.tool import ErrorType, Tool

MAX_TARGET_CHARS = 32 << 10
MAX_BODY_BYTES = 8 << 20

_ACCEPT = "application/json, text/plain;q=0.9, */*;q=0.5"
_JSON_BODY = RestBody()
_METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class RestRequest:
    """A request to be sent to the operation's origin: path and query encoded, names of headers in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class Operation:
    """What a call of a tool sends; made once a tool."""

    method: str
    path: PathTemplate
    parameters: Mapping[str, RestParameter]
    body: RestBody | None
    accept: str
    reserved: Reserved

    @classmethod
    def of(
        cls, tool: Tool, described: RestOperation, *, base_path: str = "", reserved: Reserved = NOT_RESERVED
    ) -> Self:
        """Read an operation for requests under `base_path`; InvalidTool when it cannot be sent as it is described."""
        try:
            path = PathTemplate.of(described.path, prefix=base_path)
            _check_texts(described)
        except InvalidTool as error:
            raise InvalidTool(f"tool {tool.qualified_name!r}: {error}") from error
        parameters = dict(described.parameters)
        declared = {each.name for each in parameters.values() if each.location == "path"}
        for name in path.names:
            if name not in declared:  # Hand-written tools, and documents that forgot it.
                parameters[name] = RestParameter.model_validate({"name": name, "location": "path"})
        return cls(described.method, path, parameters, described.body, described.accept or _ACCEPT, reserved)

    def request(self, arguments: JSONObject, supplied: Supplied = NOTHING) -> RestRequest:
        """Return the request of a call; ToolFailed for arguments that cannot be sent without changing its meaning."""
        try:
            return self._request(arguments, supplied)
        except UnicodeEncodeError as error:
            message = "the arguments hold half a surrogate pair, which is no text"
            raise ToolFailed(ErrorType.validation, message) from error

    def _request(self, arguments: JSONObject, supplied: Supplied) -> RestRequest:
        placing = Placing(self.reserved)
        if "accept" not in self.reserved.headers:
            placing.headers["accept"] = self.accept
        whole_argument = self.body.argument if self.body is not None else None
        whole: Any = _ABSENT
        for argument, value in arguments.items():
            if argument == whole_argument:
                whole = value
            elif argument in self.parameters:
                placing.put(self.parameters[argument], value)
            else:
                placing.put_undeclared(argument, value)
        placing.supply(supplied)
        target = self._target(placing)
        content = self._content(placing, whole, supplied)
        if content is None:
            return RestRequest(self.method, target, placing.headers)
        if len(content.data) > MAX_BODY_BYTES:
            raise ToolFailed(ErrorType.validation, f"the body is larger than {MAX_BODY_BYTES >> 20} MB")
        if "content-type" not in self.reserved.headers:
            placing.headers["content-type"] = content.type
        return RestRequest(self.method, target, placing.headers, content.data)

    def _target(self, placing: Placing) -> str:
        for name in self.path.names:
            if not placing.path.get(name):
                raise ToolFailed(ErrorType.validation, f"Missing required path parameter: {self._argument_of(name)!r}")
        target = self.path.filled(placing.path)
        query = [self.path.query] if self.path.query else []
        query += [f"{name}={value}" for name, value in placing.query]
        if query:
            target = f"{target}?{'&'.join(query)}"
        if len(target) > MAX_TARGET_CHARS:
            raise ToolFailed(ErrorType.validation, f"the URL is longer than {MAX_TARGET_CHARS} characters")
        return target

    def _argument_of(self, name: str) -> str:
        matching = (
            argument for argument, each in self.parameters.items() if (each.location, each.name) == ("path", name)
        )
        return next(matching, name)

    def _content(self, placing: Placing, whole: Any, supplied: Supplied) -> Content | None:
        if self.body is None and self.method not in _METHODS_WITH_BODY:
            return None
        body = self.body or _JSON_BODY
        if body.mode == "fields":
            return content_of_fields(body, placing.fields) if placing.fields or body.required else None
        if whole is _ABSENT:
            return None
        if supplied.body and isinstance(whole, dict):
            whole = {**whole, **supplied.body}
        return content_of_value(body, whole)


def _check_texts(described: RestOperation) -> None:
    """InvalidTool for a name or media type that would not stay inside its header."""
    for parameter in described.parameters.values():
        if parameter.location == "header":
            check_header_name(parameter.name)
        if parameter.content_type is not None:
            check_media_type(parameter.content_type)
    if described.body is not None:
        check_media_type(described.body.content_type)
    if described.accept is not None:
        check_media_type(described.accept)
