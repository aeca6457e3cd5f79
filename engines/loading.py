"""From the tools block to the registry (at submit), and to the pinned block that workers load without any file."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from engines.configuration import ToolsConfiguration
from engines.enrichments.cache import cache_folder
from engines.enrichments.enrichment import OpenSpeak
from engines.enrichments.running import Enriching
from engines.errors import (
    ConfigurationInvalid,
    Place,
    SettingsInvalid,
    UnknownEngine,
)
from engines.loaders.entries import PinRecipe, Resolve, Surroundings, as_written, no_recipes
from engines.loaders.gathering import Gathering
from engines.loaders.kinds import LOADER_KINDS, Loader
from engines.nearest import hint
from engines.plain import JSONObject, copied
from engines.registry import ToolRegistry
from engines.samplers.sampler import artifacts_to_pin, check_sample
from engines.tool import TOOL_NAMESPACE_SEP, Tool
from engines.tool_settings import ENABLED
from engines.toolset import EXTERNAL_ENGINE, Toolset

log = structlog.get_logger(__name__)

_WRITTEN_DOWN = frozenset({"file", "inline"})


def load_registry(
    configuration: ToolsConfiguration,
    *,
    folder: Path,
    environment: Mapping[str, str],
    resolve: Resolve = as_written,
    open_speak: OpenSpeak | None = None,
    pin_recipe: PinRecipe = no_recipes,
) -> ToolRegistry:
    """Run every entry's loader, then the enrichments; ConfigurationInvalid carries the place in the block.

    `resolve` puts the values of references into an entry for as long as its loader runs (see `Surroundings`).
    `open_speak` gives models to the enrichments that ask one, `pin_recipe` reads recipes that are tools of this one.
    """

    def load() -> list[Toolset]:
        return _load_toolsets(configuration, Surroundings((), folder, environment, resolve, pin_recipe=pin_recipe))

    enriching = Enriching(configuration.enrichments, resolve, cache_folder(environment), open_speak)
    registry = ToolRegistry(
        load(),
        reload=load,
        enrich=enriching if configuration.enrichments else lambda found: (found, configuration.artifacts),
    )
    if configuration.sample is not None:
        check_sample(configuration.sample, registry)
    return registry


def _load_toolsets(configuration: ToolsConfiguration, surroundings: Surroundings) -> list[Toolset]:
    gathering = Gathering.of(configuration)
    for index, entry in enumerate(configuration.registry):
        at: Place = ("registry", index)
        _gather(entry, _engine_of(entry, configuration, at), replace(surroundings, at=at), gathering)
    return gathering.toolsets()


def _gather(entry: JSONObject, engine: str | None, surroundings: Surroundings, gathering: Gathering) -> None:
    """Load one entry; what cannot be loaded of an optional one is left out with a warning (rule U2)."""
    load, namespace = _loader_of(entry, surroundings.at), entry.get("namespace")
    if isinstance(namespace, str) and gathering.is_switched_off(namespace):
        gathering.leave_out(namespace)
        return
    if entry.get("optional") is True:
        surroundings = replace(surroundings, leave_out=_left_out)
    try:
        loaded = load(entry, surroundings)
    except SettingsInvalid:
        raise
    except ConfigurationInvalid as error:
        surroundings.leave_out(error)
        if isinstance(namespace, str):
            gathering.leave_out(namespace)
        return
    for tool in loaded:
        if engine is not None:
            gathering.answered_by(tool.namespace, engine, surroundings.at)
        try:
            gathering.add(
                _with_source(tool, entry["type"]), surroundings.at, gives_way=entry.get("on_duplicate") == "skip"
            )
        except ConfigurationInvalid as error:
            surroundings.leave_out(error)


def _left_out(error: ConfigurationInvalid) -> None:
    log.warning("tools left out: their entry is optional", cause=str(error))


def _with_source(tool: Tool, kind: str) -> Tool:
    """Note the kind of source, but for definitions that somebody wrote down (rule U8)."""
    if kind in _WRITTEN_DOWN:
        return tool
    return replace(tool, metadata={**tool.metadata, "source": kind})


def pinned(configuration: ToolsConfiguration, registry: ToolRegistry) -> JSONObject:
    """Return the block with every tool written out: JSON, equal for equal registries; loading it needs nothing else.

    What the recipe says of single tools is in the tools by then; those that are switched off are kept by name.
    """
    block = configuration.model_dump(mode="json", exclude={"registry", "enrichments"})
    block["artifacts"] = artifacts_to_pin(configuration.sample, registry)
    for settings in block["namespaces"].values():
        settings["tools"] = {}
    off = registry.names.off
    entries = [_pinned_entry(toolset, off.get(toolset.namespace, ())) for toolset in registry.toolsets.values()]
    entries += [
        _pinned_entry(Toolset(name, None, ()), names) for name, names in off.items() if name not in registry.toolsets
    ]
    block["registry"] = entries
    return block


def _pinned_entry(toolset: Toolset, off: Collection[str]) -> JSONObject:
    stubs: list[JSONObject] = [
        {"name": f"{toolset.namespace}{TOOL_NAMESPACE_SEP}{name}", "metadata": {ENABLED: False}} for name in sorted(off)
    ]
    entry: JSONObject = {
        "type": "inline",
        "namespace": toolset.namespace,
        "tools": [*(copied(tool.to_dict()) for tool in toolset.tools), *stubs],
    }
    return entry if toolset.engine is None else {**entry, "engine": toolset.engine}


def _engine_of(entry: JSONObject, configuration: ToolsConfiguration, at: Place) -> str | None:
    engine = entry.get("engine")
    if isinstance(engine, str) and engine != EXTERNAL_ENGINE and engine not in configuration.engines:
        raise UnknownEngine(f"no engine {engine!r}; {hint(engine, configuration.engines)}", at=(*at, "engine"))
    return engine


def _loader_of(entry: JSONObject, at: Place) -> Loader:
    kind: Any = entry.get("type")
    if kind not in LOADER_KINDS:
        cause = "the type is missing" if kind is None else f"no tools of type {kind!r}"
        raise ConfigurationInvalid(f"{cause}; {hint(str(kind), LOADER_KINDS)}", at=(*at, "type"))
    return LOADER_KINDS[kind]
