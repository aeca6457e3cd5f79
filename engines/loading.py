"""From the tools block to the registry (at submit), and to the pinned block that workers load without any file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engines.configuration import NamespaceSettings, ToolsConfiguration
from engines.errors import ConfigurationInvalid, DuplicateTool, InvalidTool, Place, UnknownEngine
from engines.loaders.entries import Resolve, Surroundings, as_written
from engines.loaders.kinds import LOADER_KINDS, UNAVAILABLE_LOADER_KINDS
from engines.nearest import hint
from engines.plain import JSONObject, copied
from engines.registry import ToolRegistry
from engines.samplers.random import pool
from engines.schemas import checked_schema
from engines.tool import Tool
from engines.toolset import Toolset


def load_registry(
    configuration: ToolsConfiguration,
    *,
    folder: Path,
    environment: Mapping[str, str],
    resolve: Resolve = as_written,
) -> ToolRegistry:
    """Run every entry's loader; ConfigurationInvalid carries the place in the block.

    `resolve` puts the values of references into an entry for as long as its loader runs (see `Surroundings`).
    """

    def load() -> list[Toolset]:
        return _load_toolsets(configuration, folder, environment, resolve)

    try:
        registry = ToolRegistry(load(), reload=load)
    except (DuplicateTool, InvalidTool) as error:
        raise ConfigurationInvalid(str(error), at=("registry",)) from error
    _check_sample(configuration, registry)
    return registry


def _load_toolsets(
    configuration: ToolsConfiguration, folder: Path, environment: Mapping[str, str], resolve: Resolve
) -> list[Toolset]:
    if configuration.enrichments:
        raise ConfigurationInvalid("enrichments are not available in this version; remove them", at=("enrichments",))
    tools: dict[str, list[Tool]] = {}
    engines: dict[str, str] = {}
    for index, entry in enumerate(configuration.registry):
        at: Place = ("registry", index)
        engine = _engine_of(entry, configuration, at)
        loaded = _loaded(entry, Surroundings(at=at, folder=folder, environment=environment, resolve=resolve))
        for tool in loaded:
            _check(tool, at)
            tools.setdefault(tool.namespace, []).append(tool)
            if engine is not None and engines.setdefault(tool.namespace, engine) != engine:
                message = f"namespace {tool.namespace!r} is already answered by engine {engines[tool.namespace]!r}"
                raise ConfigurationInvalid(f"{message}; give these tools another namespace", at=(*at, "engine"))
    return _assembled(configuration, tools, engines)


def pinned(configuration: ToolsConfiguration, registry: ToolRegistry) -> JSONObject:
    """Return the block with every tool written out: JSON, equal for equal registries; loading it needs nothing else."""
    block = configuration.model_dump(mode="json", exclude={"registry"})
    block["registry"] = [_pinned_entry(toolset) for toolset in registry.toolsets.values()]
    return block


def _pinned_entry(toolset: Toolset) -> JSONObject:
    entry: JSONObject = {
        "type": "inline",
        "namespace": toolset.namespace,
        "tools": [copied(tool.to_dict()) for tool in toolset.tools],
    }
    return entry if toolset.engine is None else {**entry, "engine": toolset.engine}


def _engine_of(entry: JSONObject, configuration: ToolsConfiguration, at: Place) -> str | None:
    engine = entry.get("engine")
    if isinstance(engine, str) and engine not in configuration.engines:
        raise UnknownEngine(f"no engine {engine!r}; {hint(engine, configuration.engines)}", at=(*at, "engine"))
    return engine


def _loaded(entry: JSONObject, surroundings: Surroundings) -> list[Tool]:
    kind: Any = entry.get("type")
    if kind in UNAVAILABLE_LOADER_KINDS:
        message = f"tools of type {kind!r} are not available in this version; list them in a file"
        raise ConfigurationInvalid(message, at=(*surroundings.at, "type"))
    if kind not in LOADER_KINDS:
        cause = "the type is missing" if kind is None else f"no tools of type {kind!r}"
        raise ConfigurationInvalid(f"{cause}; {hint(str(kind), LOADER_KINDS)}", at=(*surroundings.at, "type"))
    return LOADER_KINDS[kind](entry, surroundings)


def _check(tool: Tool, at: Place) -> None:
    """Compile the schemas now: a broken one must stop `submit`, not ten thousand conversations."""
    try:
        checked_schema(tool.parameters, of=f"tool {tool.qualified_name!r}: parameters")
        if tool.output_parameters is not None:
            checked_schema(tool.output_parameters, of=f"tool {tool.qualified_name!r}: output_parameters")
    except InvalidTool as error:
        raise ConfigurationInvalid(str(error), at=at) from error


def _assembled(
    configuration: ToolsConfiguration, tools: Mapping[str, list[Tool]], engines: Mapping[str, str]
) -> list[Toolset]:
    for namespace in configuration.namespaces:
        if namespace not in tools:
            message = f"no tools in namespace {namespace!r}; {hint(namespace, tools)}"
            raise ConfigurationInvalid(message, at=("namespaces", namespace))
    toolsets = []
    for namespace, own in tools.items():
        settings = configuration.namespaces.get(namespace, _PLAIN)
        toolset = Toolset(
            namespace=namespace,
            engine=engines.get(namespace),
            tools=tuple(own),
            defaults=settings.defaults,
            stateful=settings.stateful,
            max_concurrency=settings.max_concurrency,
            simulate=settings.simulate,
            cache=settings.cache,
        )
        toolsets.append(toolset)
    try:
        for toolset in toolsets:
            for tool in toolset.tools:
                toolset.defaults_for(tool)
    except InvalidTool as error:
        raise ConfigurationInvalid(str(error), at=("registry",)) from error
    return toolsets


def _check_sample(configuration: ToolsConfiguration, registry: ToolRegistry) -> None:
    sample = configuration.sample
    if sample is None:
        return
    if sample.namespace is not None and sample.namespace not in registry.toolsets:
        message = f"no tools in namespace {sample.namespace!r}; {hint(sample.namespace, registry.toolsets)}"
        raise ConfigurationInvalid(message, at=("sample", "namespace"))
    available = len(pool(registry, sample.namespace))
    if sample.k > available:
        raise ConfigurationInvalid(f"{sample.k} tools asked for, {available} there; lower k", at=("sample", "k"))


_PLAIN = NamespaceSettings()
