"""`neighbors`: for each tool those that are most like it, by the tools' embeddings."""

from typing import ClassVar, Self

from pydantic import Field

from engines.checked import checked
from engines.enrichments.enrichment import EnrichmentParts, EnrichmentSettings, Material
from engines.enrichments.nearest_of import nearest_of
from engines.enrichments.similarity import similarities


class NeighborsSettings(EnrichmentSettings):
    """At most `max_neighbors` of each namespace are kept for a tool."""

    max_neighbors: int = Field(default=10, ge=1)


class Neighbors:
    """Leaves `{"near": {name: [[other, cosine], …]}}`, the nearest first."""

    artifact_key: ClassVar[str | None] = "neighbors"
    depends_on: ClassVar[tuple[str, ...]] = ("embeddings",)
    reads_outputs: ClassVar[bool] = False

    def __init__(self, max_neighbors: int = 10) -> None:
        self._max_neighbors = max_neighbors

    @classmethod
    def from_parts(cls, parts: EnrichmentParts) -> Self:
        """Check the settings."""
        return cls(checked(NeighborsSettings, parts.settings, at=parts.at).max_neighbors)

    async def enrich(self, material: Material) -> None:
        """Compare every tool with every other."""
        vectors = material.artifacts["embeddings"]
        names = list(vectors)
        namespace_of = {tool.qualified_name: tool.namespace for tool in material.tools}
        near = {}
        for position, found in enumerate(similarities(list(vectors.values()), list(vectors.values()))):
            scores = {names[other]: score for other, score in found.items() if other != position}
            near[names[position]] = [
                [name, score] for name, score in nearest_of(scores, namespace_of, self._max_neighbors)
            ]
        material.artifacts["neighbors"] = {"near": near}
