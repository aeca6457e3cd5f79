"""`embeddings`: a vector for each tool, of its name, description and parameters."""

from typing import ClassVar, Self

from engines.checked import checked
from engines.enrichments.encoders import Encoder, EncodingSettings, build_encoder
from engines.enrichments.enrichment import EnrichmentParts, Material
from engines.enrichments.texts import tool_text


class Embeddings:
    """Leaves `{qualified name: vector}`; of overloads, all texts together."""

    artifact_key: ClassVar[str | None] = "embeddings"
    depends_on: ClassVar[tuple[str, ...]] = ()
    reads_outputs: ClassVar[bool] = True

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    @classmethod
    def from_parts(cls, parts: EnrichmentParts) -> Self:
        """Check the settings and make the encoder."""
        settings = checked(EncodingSettings, parts.settings, at=parts.at)
        return cls(build_encoder(settings, at=parts.at, cache_folder=parts.cache_folder))

    async def enrich(self, material: Material) -> None:
        """Encode every tool."""
        texts: dict[str, str] = {}
        for tool in material.tools:
            text = tool_text(tool)
            before = texts.get(tool.qualified_name)
            texts[tool.qualified_name] = text if before is None else f"{before}\n{text}"
        vectors = await self._encoder.encode(list(texts.values()))
        material.artifacts["embeddings"] = dict(zip(texts, vectors, strict=True))
