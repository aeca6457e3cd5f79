"""What a recipe says of one tool, put over what its loader found; the outcome is the tool itself, as it is pinned."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engines.configuration import NamespaceSettings, ToolSettings
from engines.errors import InvalidTool
from engines.plain import JSONObject
from engines.tool import Tool

ENABLED = "enabled"
EXCLUSIVE = "exclusive"
ALWAYS_ON = "always_on"
CONFIRM = "confirm"
EXTERNAL = "external"
_SWITCHES = (ENABLED, EXCLUSIVE, ALWAYS_ON, CONFIRM, EXTERNAL, "takes_control", "read_only", "idempotent")
_WORDS = ("system_prompt", "user_prompt", "evaluation_checks")
ENSEMBLE_DEFAULTS = "ensemble_defaults"
"""A loader's key for defaults of its whole ensemble: under the recipe's for the namespace, which a tool's own beat."""


def adjusted(tool: Tool, settings: ToolSettings | None, namespace: NamespaceSettings) -> Tool:
    """Return the tool with the recipe's word over it; InvalidTool for switches of its metadata that are none."""
    metadata = dict(tool.metadata)
    if (ensembles := metadata.pop(ENSEMBLE_DEFAULTS, None)) is not None:
        over = namespace.defaults.model_dump(exclude_unset=True)
        metadata["defaults"] = {**ensembles, **over, **_own_defaults(tool)}
    if settings is not None:
        metadata.update(_said(settings))
        if settings.defaults is not None:
            metadata["defaults"] = {**metadata.get("defaults", {}), **settings.defaults}
    for switch in _SWITCHES:
        if not isinstance(metadata.get(switch, False), bool):
            message = f"metadata.{switch} must be true or false, got {metadata[switch]!r}"
            raise InvalidTool(f"tool {tool.qualified_name!r}: {message}")
    if metadata.get(EXCLUSIVE) and metadata.get(ALWAYS_ON):
        raise InvalidTool(f"tool {tool.qualified_name!r}: it cannot be both exclusive and always_on; choose one")
    description = tool.description if settings is None or settings.description is None else settings.description
    if metadata == tool.metadata and description == tool.description:
        return tool
    return replace(tool, description=description, metadata=metadata)


def is_on(tool: Tool, switch: str, *, by_default: bool = False) -> bool:
    """Whether a switch of the tool's metadata is on."""
    return bool(tool.metadata.get(switch, by_default))


def is_enabled(tool: Tool) -> bool:
    """Whether the tool is offered and executed at all (rule E9)."""
    return is_on(tool, ENABLED, by_default=True)


def _said(settings: ToolSettings) -> JSONObject:
    """The switches that the recipe really mentions: one left out stays as it was loaded."""
    mentioned = {*_SWITCHES, *_WORDS} & settings.model_fields_set
    said: Mapping[str, Any] = settings.model_dump(mode="json", include=mentioned)
    return {switch: value for switch, value in said.items() if value is not None}


def _own_defaults(tool: Tool) -> JSONObject:
    own = tool.metadata.get("defaults") or {}
    if not isinstance(own, dict):
        raise InvalidTool(f"tool {tool.qualified_name!r}: metadata.defaults must be an object, got {own!r}")
    return own
