"""The tools of a draw as a graph: which leads to which and how strongly, as an enrichment's artifact says it."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from engines.configuration import SampleSettings
from engines.samplers.pool import pool
from engines.samplers.prepare import Index
from engines.tool import Tool

Edges = Mapping[str, Sequence[tuple[str, float]]]
"""From a tool's name to those it leads to, each with its score; only tools of the draw, never a tool itself."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Tools by qualified name, in the order of the registry, and the edges among them."""

    tools: Mapping[str, Tool]
    edges: Edges

    @classmethod
    def of(cls, tools: Sequence[Tool], settings: SampleSettings, index: Index) -> Self:
        """Keep of an index what lies among the tools and is strong enough."""
        named = {tool.qualified_name: tool for tool in pool(tools, settings.namespace)}
        edges = {}
        for name in named:
            found = [
                (str(other), float(score))
                for other, score, *_ in index.get(name, ())
                if other in named and other != name and score > 0 and score >= settings.min_score
            ]
            if found:
                edges[name] = found
        return cls(named, edges)

    def with_at_least(self, number: int) -> list[str]:
        """Return the tools that lead to so many others or more."""
        return [name for name in self.tools if len(self.edges.get(name, ())) >= number]

    def named(self, names: Sequence[str]) -> list[Tool]:
        """Return the tools of these names."""
        return [self.tools[name] for name in names]


def by_weight(edges: Sequence[tuple[str, float]], chance: random.Random) -> list[str]:
    """Return the names in an order drawn by their scores: each place goes to one of those left, by its weight."""
    return [name for name, _ in sorted(edges, key=lambda edge: chance.expovariate(edge[1]))]
