"""`dataflow`: which tool's output can be which tool's input, parameter by parameter (rules D77, D78)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import Field

from engines.checked import checked
from engines.enrichments.encoders import Encoder, EncodingSettings, build_encoder
from engines.enrichments.enrichment import EnrichmentParts, Material
from engines.enrichments.fitting import type_fit
from engines.enrichments.nearest_of import nearest_of
from engines.enrichments.similarity import similarities
from engines.enrichments.texts import parameter_text, properties_of
from engines.tool import Tool

_PAIRS_TOLD = 3
_DIGITS = 4


class DataflowSettings(EncodingSettings):
    """At most `max_neighbors` edges to each namespace are kept for a tool, none that scores less than `min_score`."""

    max_neighbors: int = Field(default=10, ge=1)
    min_score: float = Field(default=0.0, ge=0, le=1)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One property of a tool's input or output."""

    tool: str
    name: str
    schema: Any
    text: str


Pair = tuple[float, str, str]  # score, the output's name, the input's name
Edges = dict[str, dict[str, list[Pair]]]  # from a tool to those that it feeds


class Dataflow:
    """Leaves `{"out": {name: [[successor, score, [[output, input, score], …]], …]}, "in": {…}}`; "in" has predecessors.

    An edge scores what its best pair does: how alike the two texts are, times how well the types fit.
    """

    artifact_key: ClassVar[str | None] = "dataflow"
    depends_on: ClassVar[tuple[str, ...]] = ()
    reads_outputs: ClassVar[bool] = True

    def __init__(self, encoder: Encoder, *, max_neighbors: int = 10, min_score: float = 0.0) -> None:
        self._encoder = encoder
        self._max_neighbors = max_neighbors
        self._min_score = min_score

    @classmethod
    def from_parts(cls, parts: EnrichmentParts) -> Self:
        """Check the settings and make the encoder."""
        settings = checked(DataflowSettings, parts.settings, at=parts.at)
        encoder = build_encoder(settings, at=parts.at, cache_folder=parts.cache_folder)
        return cls(encoder, max_neighbors=settings.max_neighbors, min_score=settings.min_score)

    async def enrich(self, material: Material) -> None:
        """Compare every output with every input of other tools."""
        outputs = [each for tool in material.tools for each in _parameters(tool, tool.output_parameters)]
        inputs = [each for tool in material.tools for each in _parameters(tool, tool.parameters)]
        edges = await self._edges(outputs, inputs)
        namespace_of = {tool.qualified_name: tool.namespace for tool in material.tools}
        material.artifacts["dataflow"] = {
            "out": {source: self._strongest(targets, namespace_of) for source, targets in edges.items()},
            "in": {target: self._strongest(sources, namespace_of) for target, sources in _turned_round(edges).items()},
        }

    def _strongest(self, others: Mapping[str, Sequence[Pair]], namespace_of: Mapping[str, str]) -> list[Any]:
        """Return one row of the index: other tools with their score and their best pairs."""
        scores = {name: pairs[0][0] for name, pairs in others.items()}
        return [
            [name, score, [[given, taken, one] for one, given, taken in others[name][:_PAIRS_TOLD]]]
            for name, score in nearest_of(scores, namespace_of, self._max_neighbors)
        ]

    async def _edges(self, outputs: Sequence[Parameter], inputs: Sequence[Parameter]) -> Edges:
        """Return every edge with its pairs, the best first; equal texts are compared once."""
        texts = list(dict.fromkeys(each.text for each in (*outputs, *inputs)))
        vectors = dict(zip(texts, await self._encoder.encode(texts), strict=True)) if texts else {}
        taken_by: dict[str, list[Parameter]] = {}
        for each in inputs:
            taken_by.setdefault(each.text, []).append(each)
        columns = list(taken_by)
        given_texts = list(dict.fromkeys(each.text for each in outputs))
        alike = similarities([vectors[text] for text in given_texts], [vectors[text] for text in columns])
        found_for = dict(zip(given_texts, alike, strict=True))
        edges: Edges = {}
        for output in outputs:
            for column, similarity in found_for[output.text].items():
                for taken in taken_by[columns[column]]:
                    score = round(similarity * type_fit(output.schema, taken.schema), _DIGITS)
                    if taken.tool != output.tool and score > 0 and score >= self._min_score:
                        pairs = edges.setdefault(output.tool, {}).setdefault(taken.tool, [])
                        pairs.append((score, output.name, taken.name))
        for targets in edges.values():
            for pairs in targets.values():
                pairs.sort(key=lambda pair: (-pair[0], pair[1:]))
        return edges


def _turned_round(edges: Edges) -> Edges:
    turned: Edges = {}
    for source, targets in edges.items():
        for target, pairs in targets.items():
            turned.setdefault(target, {})[source] = pairs
    return turned


def _parameters(tool: Tool, schema: Any) -> list[Parameter]:
    return [
        Parameter(tool.qualified_name, name, part, parameter_text(tool, name, part))
        for name, part in properties_of(schema or {})
    ]
