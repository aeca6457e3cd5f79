"""Every kind of enrichment: one row a builder."""

from collections.abc import Callable, Mapping

from engines.enrichments.dataflow import Dataflow
from engines.enrichments.embeddings import Embeddings
from engines.enrichments.enrichment import Enrichment, EnrichmentParts
from engines.enrichments.neighbors import Neighbors
from engines.enrichments.output_parameters import OutputParameters

ENRICHMENT_KINDS: Mapping[str, Callable[[EnrichmentParts], Enrichment]] = {
    "output_parameters": OutputParameters.from_parts,
    "embeddings": Embeddings.from_parts,
    "dataflow": Dataflow.from_parts,
    "neighbors": Neighbors.from_parts,
}
