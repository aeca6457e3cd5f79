"""`tc/chain`: each tool can use what the one before it gives: a walk along the dataflow, weighted by its scores."""

import random
from collections.abc import Sequence

from engines.chance import derive_seed
from engines.configuration import SampleSettings
from engines.samplers.errors import SamplingError
from engines.samplers.graph import Graph, by_weight
from engines.samplers.prepare import Draw, Index
from engines.tool import Tool

_MOST_STEPS = 20_000


def prepare(tools: Sequence[Tool], settings: SampleSettings, index: Index) -> Draw:
    """Draw `k` tools in the order of their calls, none twice (rule D82)."""
    graph = Graph.of(tools, settings, index)

    def draw(seed: int) -> list[Tool]:
        chance = random.Random(derive_seed("tc/chain", seed))
        walk = _walk(graph, settings.k, chance)
        if len(walk) < settings.k:
            message = (
                f"a chain of {settings.k} tools asked for, the longest found has {len(walk)}; lower k or min_score"
            )
            raise SamplingError(message, requested=settings.k, tools=graph.named(walk))
        return graph.named(walk)

    return draw


def _walk(graph: Graph, k: int, chance: random.Random) -> list[str]:
    """Return a walk of `k` names, or the longest that so many steps found: a dead end is walked back from."""
    starts = list(graph.tools)
    longest: list[str] = []
    steps = 0
    while starts:
        path = [_taken(starts, chance)]
        ways = [_ways(graph, path, chance)]
        while path:
            if len(path) > len(longest):
                longest = list(path)
            if len(path) >= k or steps >= _MOST_STEPS:
                return longest
            if not ways[-1]:
                path.pop()
                ways.pop()
                continue
            steps += 1
            path.append(ways[-1].pop())
            ways.append(_ways(graph, path, chance))
    return longest


def _taken(names: list[str], chance: random.Random) -> str:
    """Take one name out of the list, all alike."""
    position = chance.randrange(len(names))
    names[position], names[-1] = names[-1], names[position]
    return names.pop()


def _ways(graph: Graph, path: Sequence[str], chance: random.Random) -> list[str]:
    """Return where to go from the end of a path, the way to try first at the end."""
    new = [edge for edge in graph.edges.get(path[-1], ()) if edge[0] not in path]
    return by_weight(new, chance)[::-1]
