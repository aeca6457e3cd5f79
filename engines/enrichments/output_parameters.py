"""`output_parameters`: a model says what tools return that do not say so themselves (rule D77)."""

import asyncio
import hashlib
import json
from dataclasses import replace
from typing import ClassVar, Self

import structlog
from pydantic import Field

from engines.chance import derive_seed
from engines.checked import checked
from engines.enrichments.cache import KeptEntries
from engines.enrichments.enrichment import EnrichmentParts, EnrichmentSettings, Material, OpenSpeak
from engines.errors import ConfigurationInvalid, InvalidTool, Place, ToolFailed
from engines.plain import JSONObject, canonical, compact
from engines.schemas import checked_schema
from engines.speak import Speak
from engines.tool import INFERRED_OUTPUT, Tool

log = structlog.get_logger(__name__)

_INSTRUCTION = (
    "You are given the specification of a tool. Answer with the JSON Schema of the object that the tool returns when "
    'it succeeds: {"type": "object", "properties": {…}, "required": […]}, each property with a type and a short '
    "description. Name properties as the inputs of related tools would name them. Answer with the schema alone."
)
_TRIES = 3


class OutputParametersSettings(EnrichmentSettings):
    """`lm_config` is an lm engine's; `max_in_flight` tools are asked about at once."""

    lm_config: JSONObject
    max_in_flight: int = Field(default=8, ge=1)


class OutputParameters:
    """Completes tools without an output schema; one about which the model says nothing usable stays without."""

    artifact_key: ClassVar[str | None] = None
    depends_on: ClassVar[tuple[str, ...]] = ()
    reads_outputs: ClassVar[bool] = False

    def __init__(self, settings: OutputParametersSettings, open_speak: OpenSpeak, parts: EnrichmentParts) -> None:
        self._settings = settings
        self._open_speak = open_speak
        self._at: Place = (*parts.at, "lm_config")
        self._cache_folder = parts.cache_folder

    @classmethod
    def from_parts(cls, parts: EnrichmentParts) -> Self:
        """Check the settings."""
        settings = checked(OutputParametersSettings, parts.settings, at=parts.at)
        if parts.open_speak is None:
            raise ConfigurationInvalid("there is no way to a model here; remove this enrichment", at=parts.at)
        return cls(settings, parts.open_speak, parts)

    async def enrich(self, material: Material) -> None:
        """Take what is kept from earlier, ask for the rest, keep what is new."""
        lacking = [tool for tool in material.tools if tool.output_parameters is None]
        if not lacking:
            return
        try:
            async with self._open_speak(self._settings.lm_config) as speak:
                schemas = await self._schemas(lacking, speak)
        except ConfigurationInvalid:
            raise
        except (ToolFailed, ValueError) as error:
            raise ConfigurationInvalid(str(error), at=self._at) from error
        for position, tool in enumerate(material.tools):
            schema = schemas.get(_digest(tool)) if tool.output_parameters is None else None
            if schema is not None:
                metadata = {**tool.metadata, INFERRED_OUTPUT: True}
                material.tools[position] = replace(tool, output_parameters=schema, metadata=metadata)

    async def _schemas(self, tools: list[Tool], speak: Speak) -> dict[str, JSONObject]:
        kept = KeptEntries(self._cache_folder, "output_parameters", hashlib.sha256(speak.model_id.encode()).hexdigest())
        known = {} if self._settings.force else kept.load()
        new = {_digest(tool): tool for tool in tools if _digest(tool) not in known}
        limit = asyncio.Semaphore(self._settings.max_in_flight)

        async def asked(tool: Tool) -> JSONObject | None:
            async with limit:
                return await _schema_of(tool, speak)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = {digest: group.create_task(asked(tool)) for digest, tool in new.items()}
        except* ToolFailed as failures:
            raise failures.exceptions[0] from None
        made = {digest: schema for digest, task in tasks.items() if (schema := task.result()) is not None}
        kept.add(made)
        return {**known, **made}


async def _schema_of(tool: Tool, speak: Speak) -> JSONObject | None:
    """Ask for one tool's schema, again with another seed when the answer is none."""
    specification = {"name": tool.qualified_name, "description": tool.description, "parameters": tool.parameters}
    role = "developer" if "gpt" in speak.model_id.lower() else "system"
    messages: list[JSONObject] = [
        {"role": role, "content": _INSTRUCTION},
        {"role": "user", "content": f"Tool specification:\n{compact(specification)}"},
    ]
    problem = ""
    for attempt in range(_TRIES):
        utterances = await speak(
            messages,
            response_format={"type": "json_object"},
            candidates=1,
            seed=derive_seed("output_parameters", tool.qualified_name, attempt),
            session_id=f"output_parameters {tool.qualified_name}",
        )
        try:
            return _schema_in(utterances[0].text if utterances else "", tool)
        except (ValueError, InvalidTool) as error:
            problem = str(error)
    log.warning("a tool keeps no output schema: the model gave none", tool=tool.qualified_name, cause=problem)
    return None


def _schema_in(text: str, tool: Tool) -> JSONObject:
    """Read the model's answer; ValueError or InvalidTool when it is no schema of an object with properties."""
    start, end = text.find("{"), text.rfind("}")
    schema = json.loads(text[start : end + 1])
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict) or not schema["properties"]:
        raise ValueError("the answer is no schema of an object with properties")
    schema = {"type": "object", **schema}
    if schema["type"] != "object":
        raise ValueError(f"the answer is a schema of type {schema['type']!r}")
    checked_schema(schema, of=f"tool {tool.qualified_name!r}: output_parameters")
    return schema


def _digest(tool: Tool) -> str:
    said = canonical([_INSTRUCTION, tool.qualified_name, tool.description, tool.parameters])
    return hashlib.sha256(said.encode()).hexdigest()
