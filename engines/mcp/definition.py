"""A tool as a server lists it, made a tool of ours: cleaned, bounded, and pinned by a digest (rules D42, S9)."""

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engines.errors import InvalidTool
from engines.mcp.text import printable
from engines.plain import JSONObject, canonical
from engines.tool import INFERRED_OUTPUT, Tool

if TYPE_CHECKING:
    from mcp import Tool as McpTool

MAX_DESCRIPTION_CHARS = 4096
MAX_DEFINITION_BYTES = 256 << 10
BASE_URL, TRANSPORT, DIGEST = "mcp_base_url", "mcp_transport", "mcp_digest"

_SHOWN_TEXTS = frozenset({"description", "title", "$comment"})
_DATA = frozenset({"default", "const", "enum", "examples"})
_NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


@dataclass(frozen=True, slots=True)
class Listed:
    """What a server says of one tool."""

    name: str
    description: str
    parameters: JSONObject
    output_parameters: JSONObject | None
    annotations: JSONObject

    @classmethod
    def of(cls, tool: "McpTool") -> "Listed":
        """Take the parts that are pinned."""
        said = tool.annotations
        annotations = {} if said is None else said.model_dump(mode="json", by_alias=True, exclude_none=True)
        return cls(tool.name, tool.description or "", tool.input_schema, tool.output_schema, annotations)

    @property
    def digest(self) -> str:
        """SHA-256 over everything that a model is shown or a call is checked by, as the server wrote it."""
        whole = [self.name, self.description, self.parameters, self.output_parameters, self.annotations]
        return hashlib.sha256(canonical(whole).encode()).hexdigest()

    def as_tool(self, namespace: str, *, base_url: str, transport: str) -> Tool:
        """Return our tool; InvalidTool when its definition is too large or cannot be read."""
        size = len(canonical([self.parameters, self.output_parameters, self.annotations]))
        if size > MAX_DEFINITION_BYTES:
            message = f"its schemas take {size:,} bytes, more than {MAX_DEFINITION_BYTES:,}; leave the tool out"
            raise InvalidTool(f"tool {printable(self.name, 100)!r}: {message}")
        metadata: JSONObject = {BASE_URL: base_url, TRANSPORT: transport, DIGEST: self.digest}
        if self.annotations:
            metadata["annotations"] = cleaned(self.annotations)
        if self.name != printable(self.name, 256):
            raise InvalidTool(f"tool {printable(self.name, 100)!r}: its name holds control characters or is too long")
        return Tool.from_dict(
            {
                "name": self.name,
                "namespace": namespace,
                "description": printable(self.description, MAX_DESCRIPTION_CHARS),
                "parameters": cleaned(self.parameters),
                "output_parameters": None if self.output_parameters is None else cleaned(self.output_parameters),
                "metadata": metadata,
            }
        )


def cleaned(schema: Any) -> Any:
    """Return a schema whose texts for people and models hold no control characters; what validates is as it was."""
    if isinstance(schema, list):
        return [cleaned(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    clean: JSONObject = {}
    for key, value in schema.items():
        if key in _SHOWN_TEXTS and isinstance(value, str):
            clean[key] = printable(value, MAX_DESCRIPTION_CHARS)
        elif key in _NAMED_SCHEMAS and isinstance(value, dict):
            clean[key] = {name: cleaned(named) for name, named in value.items()}
        else:
            clean[key] = value if key in _DATA else cleaned(value)
    return clean


def difference(pinned: Tool, now: Listed) -> str:
    """Return what differs between a pinned tool and what its server lists now; "" when the digests are the same."""
    if pinned.metadata.get(DIGEST) == now.digest:
        return ""
    outputs = None if INFERRED_OUTPUT in pinned.metadata else pinned.output_parameters
    changes = [
        *_schema_changes("parameters", pinned.parameters, cleaned(now.parameters)),
        *_schema_changes("output schema", outputs, cleaned(now.output_parameters)),
    ]
    before = pinned.metadata.get("annotations") or {}
    changes += [
        f"annotation {key}: {before.get(key)!r} → {now.annotations.get(key)!r}"
        for key in sorted(before.keys() | now.annotations.keys())
        if before.get(key) != cleaned(now.annotations).get(key)
    ]
    return printable("; ".join(changes or ["its description differs"]), _DIFFERENCE_CHARS)


_DIFFERENCE_CHARS = 1000


def _schema_changes(what: str, before: Any, now: Any) -> list[str]:
    typed = {"type": "object", **(now or {})}  # as a definition without a type was read
    if before in (now, typed):
        return []
    if not isinstance(before, dict) or not isinstance(now, dict):
        return [f"{what} {'added' if before is None else 'removed' if now is None else 'differ'}"]
    old, new = (each.get("properties") or {} for each in (before, now))
    changes = [f"+{name}" for name in new if name not in old]
    changes += [f"-{name}" for name in old if name not in new]
    changes += [f"~{name}" for name in new if name in old and old[name] != new[name]]
    others = (before.keys() | now.keys()) - {"properties"}
    changes += [key for key in sorted(others) if before.get(key) != now.get(key)]
    return [f"{what}: {', '.join(changes)}"] if changes else []
