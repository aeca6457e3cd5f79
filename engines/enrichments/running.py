"""Runs the enrichments of a tools block over what its loaders found."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engines.enrichments.enrichment import Enrichment, EnrichmentParts, Material, OpenSpeak
from engines.enrichments.kinds import ENRICHMENT_KINDS
from engines.enrichments.order import ordered
from engines.errors import ConfigurationInvalid, Place
from engines.loaders.entries import Resolve, as_written
from engines.nearest import hint
from engines.plain import JSONObject
from engines.tool import Tool
from engines.toolset import Toolset


@dataclass(frozen=True, slots=True)
class Enriching:
    """The enrichments as written, and what they need: references are resolved for as long as they run."""

    written: tuple[JSONObject, ...]
    resolve: Resolve = as_written
    cache_folder: Path | None = None
    open_speak: OpenSpeak | None = None

    def __call__(self, toolsets: Sequence[Toolset]) -> tuple[Sequence[Toolset], Mapping[str, Any]]:
        """Return the toolsets with their tools as they are now, and the artifacts; ConfigurationInvalid says where."""
        if not self.written:
            return toolsets, {}
        enrichments = ordered([self._built(index, entry) for index, entry in enumerate(self.written)])
        material = Material([tool for toolset in toolsets for tool in toolset.tools])
        with ThreadPoolExecutor(1) as pool:  # A loop of its own, whether or not one runs here already.
            pool.submit(asyncio.run, _run(enrichments, material)).result()
        left = iter(material.tools)
        return [replace(toolset, tools=_next(left, len(toolset.tools))) for toolset in toolsets], material.artifacts

    def _built(self, index: int, entry: JSONObject) -> Enrichment:
        at: Place = ("enrichments", index)
        kind = entry.get("type")
        if kind not in ENRICHMENT_KINDS:
            cause = "the type is missing" if kind is None else f"no enrichment {kind!r}"
            raise ConfigurationInvalid(f"{cause}; {hint(str(kind), ENRICHMENT_KINDS)}", at=(*at, "type"))
        parts = EnrichmentParts(self.resolve(entry, at), at, self.cache_folder, self.open_speak)
        return ENRICHMENT_KINDS[str(kind)](parts)


async def _run(enrichments: Sequence[Enrichment], material: Material) -> None:
    for enrichment in enrichments:
        await enrichment.enrich(material)


def _next(tools: Any, number: int) -> tuple[Tool, ...]:
    return tuple(next(tools) for _ in range(number))
