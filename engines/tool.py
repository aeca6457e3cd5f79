"""The data every floor shares: a tool, a call to it, and the result of the call."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from engines.definitions import definition_of
from engines.errors import InvalidTool
from engines.plain import JSONObject, canonical

TOOL_NAMESPACE_SEP = "::"
DEFAULT_NAMESPACE = "default"
INFERRED_OUTPUT = "output_parameters_inferred"
"""Metadata of a tool whose output schema a model made up: good for planning, and nothing a live answer can break."""
DEBUG = "debug"
"""The key, in a record's metadata of a result, of how that result came about (rule U17)."""


class ErrorType(StrEnum):
    """Why a call failed."""

    validation = "validation"
    execution = "execution"
    timeout = "timeout"
    permission = "permission"
    network = "network"
    unknown_tool = "unknown_tool"
    unparseable_result = "unparseable_result"
    schema_violation = "schema_violation"
    conflict = "conflict"
    limit = "limit"
    external = "external"


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: JSON Schemas of what it takes and, if known, of what it gives (rule D1)."""

    name: str
    namespace: str = DEFAULT_NAMESPACE
    description: str = ""
    parameters: JSONObject = field(default_factory=lambda: {"type": "object", "properties": {}})
    output_parameters: JSONObject | None = None
    metadata: JSONObject = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_names("tool", self.name, self.namespace)

    def __hash__(self) -> int:
        """Hash the name only: schemas are dicts."""
        return hash((self.namespace, self.name))

    @property
    def qualified_name(self) -> str:
        """`namespace::name`."""
        return f"{self.namespace}{TOOL_NAMESPACE_SEP}{self.name}"

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 of the parameters' JSON with sorted keys (rule D69)."""
        return hashlib.sha256(canonical(self.parameters).encode()).hexdigest()

    def to_dict(self) -> JSONObject:
        """Return the definition under its qualified name; `from_dict` reads it back (rule D3)."""
        definition: JSONObject = {
            "name": self.qualified_name,
            "description": self.description,
            "parameters": self.parameters,
        }
        if self.output_parameters is not None:
            definition["output_parameters"] = self.output_parameters
        if self.metadata:
            definition["metadata"] = self.metadata
        return definition

    @classmethod
    def from_dict(cls, definition: Mapping[str, Any], *, namespace: str = DEFAULT_NAMESPACE) -> Self:
        """Read a definition; `namespace` holds where it names none. InvalidTool names the tool and the cause."""
        read = definition_of(definition)
        own_namespace, name = _split(read.name, read.namespace, fallback=namespace)
        return cls(
            name=name,
            namespace=own_namespace,
            description=read.description,
            parameters=read.parameters,
            output_parameters=read.output_parameters,
            metadata=read.metadata,
        )


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to run a tool with these arguments (rule D2)."""

    name: str
    namespace: str
    arguments: JSONObject
    call_id: str | None = None

    @property
    def qualified_name(self) -> str:
        """`namespace::name`."""
        return f"{self.namespace}{TOOL_NAMESPACE_SEP}{self.name}"

    @classmethod
    def parse(cls, qualified_name: str, arguments: JSONObject | None = None, call_id: str | None = None) -> Self:
        """Split at the first `::` only; a name without one lies in the default namespace."""
        namespace, name = _split(qualified_name, None, fallback=DEFAULT_NAMESPACE)
        return cls(name=name, namespace=namespace, arguments={} if arguments is None else arguments, call_id=call_id)

    def to_dict(self) -> JSONObject:
        """`{"name": "ns::name", "arguments": {…}, "id": …}` (rule D5)."""
        return {"name": self.qualified_name, "arguments": self.arguments, "id": self.call_id}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read `{"name": "ns::name", …}` or `{"name", "namespace", …}`; arguments may be JSON text (rules D2, U21)."""
        name = data.get("name")
        if not isinstance(name, str):
            raise InvalidTool(f"a tool call needs a name, got {name!r}")
        namespace, own_name = _split(name, data.get("namespace"), fallback=DEFAULT_NAMESPACE)
        call_id = data.get("id", data.get("call_id"))
        arguments = _arguments(data.get("arguments"), name)
        return cls(name=own_name, namespace=namespace, arguments=arguments, call_id=call_id)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call came to: a result, or an error with its type (rule D4).

    `debug` says how it came about: `{seconds, attempts, engine, …}`. It is part of the record, and of nothing else.
    """

    call_id: str | None
    name: str
    result: Any = None
    error: str | None = None
    error_type: ErrorType | None = None
    metadata: JSONObject = field(default_factory=dict)
    debug: JSONObject = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_error(self) -> bool:
        """Whether the call failed."""
        return self.error is not None

    @classmethod
    def failed(cls, call: ToolCall, error_type: ErrorType, message: str, **metadata: Any) -> Self:
        """Return the error result of a call."""
        return cls(call.call_id, call.qualified_name, error=message, error_type=error_type, metadata=metadata)

    def to_dict(self) -> JSONObject:
        """`{"id", "name", "result", "error"?, "error_type"?, "metadata"?}` (rule D5)."""
        data: JSONObject = {"id": self.call_id, "name": self.name, "result": self.result}
        if self.error is not None:
            data["error"] = self.error
        if self.error_type is not None:
            data["error_type"] = self.error_type.value
        if self.metadata:
            data["metadata"] = self.metadata
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote, or a record's entry: `call_id` in place of `id`, and debug data."""
        name = data.get("name")
        if not isinstance(name, str):
            raise InvalidTool(f"a tool result needs the name of its tool, got {name!r}")
        error_type = data.get("error_type")
        try:
            known_type = None if error_type is None else ErrorType(error_type)
        except ValueError as error:
            raise InvalidTool(f"result of {name}: {error}; known: {', '.join(ErrorType)}") from error
        metadata = dict(data.get("metadata") or {})
        debug = metadata.pop(DEBUG, None)
        return cls(
            call_id=data.get("id", data.get("call_id")),
            name=name,
            result=data.get("result"),
            error=data.get("error"),
            error_type=known_type,
            metadata=metadata,
            debug=debug if isinstance(debug, dict) else {},
        )


def _split(name: str, namespace: str | None, *, fallback: str) -> tuple[str, str]:
    """Return (namespace, name): a given namespace wins over the fallback, a `ns::` prefix says it too."""
    if namespace is not None:
        return namespace, name.removeprefix(f"{namespace}{TOOL_NAMESPACE_SEP}")
    prefix, separator, rest = name.partition(TOOL_NAMESPACE_SEP)
    return (prefix, rest) if separator else (fallback, name)


def _check_names(kind: str, name: str, namespace: str) -> None:
    """Refuse a name that would not come back the same from `namespace::name`."""
    if not name:
        raise InvalidTool(f"a {kind} needs a name of at least one character, got {name!r}")
    if not namespace or TOOL_NAMESPACE_SEP in namespace or namespace.endswith(":"):
        raise InvalidTool(
            f"{kind} {name!r}: a namespace is text without {TOOL_NAMESPACE_SEP!r} and without ':' at its end, "
            f"got {namespace!r}"
        )


def _arguments(given: Any, name: str) -> JSONObject:
    """Return a call's arguments: an object, JSON text of one, or nothing at all."""
    if given is None or given == "":
        return {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise InvalidTool(f"call of {name!r}: its arguments are not JSON ({error})") from error
    return given if isinstance(given, dict) else {}
