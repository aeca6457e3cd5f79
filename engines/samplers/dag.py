"""`tc/dag`: a connected piece of the dataflow without circles, in an order in which it can be called."""

import random
from collections.abc import Mapping, Sequence

from engines.chance import derive_seed
from engines.configuration import SampleSettings
from engines.samplers.errors import SamplingError
from engines.samplers.graph import Edges, Graph
from engines.samplers.prepare import Draw, Index
from engines.tool import Tool

Edge = tuple[str, str]


def prepare(tools: Sequence[Tool], settings: SampleSettings, index: Index) -> Draw:
    """Draw `k` tools, each tied to another by an edge, every one after those that feed it."""
    graph = Graph.of(tools, settings, index)
    feeders = _turned_round(graph.edges)

    def draw(seed: int) -> list[Tool]:
        chance = random.Random(derive_seed("tc/dag", seed))
        starts = list(graph.tools)
        chance.shuffle(starts)
        largest: list[str] = []
        tried: set[str] = set()
        for start in starts:
            if start in tried:  # In a piece that is too small, every start leads to the same tools.
                continue
            names = _grown(start, graph.edges, feeders, settings.k, chance)
            if len(names) == settings.k:
                return graph.named(_in_order(names, graph.edges))
            tried.update(names)
            largest = max(largest, names, key=len)
        message = f"{settings.k} connected tools asked for, the most found are {len(largest)}; lower k or min_score"
        raise SamplingError(message, requested=settings.k, tools=graph.named(largest))

    return draw


def _grown(start: str, out: Edges, into: Edges, k: int, chance: random.Random) -> list[str]:
    """Return up to `k` connected names: each joins by one of the edges at hand, drawn by its weight."""
    names = [start]
    at_hand: dict[Edge, float] = {}
    while len(names) < k:
        newest = names[-1]
        at_hand.update({(newest, other): score for other, score in out.get(newest, ())})
        at_hand.update({(other, newest): score for other, score in into.get(newest, ())})
        at_hand = {edge: score for edge, score in at_hand.items() if edge[0] not in names or edge[1] not in names}
        if not at_hand:
            break
        feeder, fed = chance.choices(list(at_hand), list(at_hand.values()))[0]
        names.append(fed if feeder in names else feeder)
    return names


def _in_order(names: Sequence[str], out: Edges) -> list[str]:
    """Sort so that feeders come first, by all edges among the names but those that would make a circle of stronger."""
    before: dict[str, set[str]] = {name: set() for name in names}
    inside = [(score, name, other) for name in names for other, score in out.get(name, ()) if other in before]
    for _, feeder, fed in sorted(inside, key=lambda edge: -edge[0]):
        if not _comes_before(fed, feeder, before):
            before[fed].add(feeder)
    ordered: list[str] = []
    while len(ordered) < len(names):
        ordered += [name for name in names if name not in ordered and before[name] <= set(ordered)]
    return ordered


def _comes_before(name: str, other: str, before: Mapping[str, set[str]]) -> bool:
    """Whether `name` has to come before `other`, by whatever way."""
    waiting, seen = [other], set()
    while waiting:
        current = waiting.pop()
        if current == name:
            return True
        if current not in seen:
            seen.add(current)
            waiting.extend(before[current])
    return False


def _turned_round(edges: Edges) -> Edges:
    turned: dict[str, list[tuple[str, float]]] = {}
    for name, found in edges.items():
        for other, score in found:
            turned.setdefault(other, []).append((name, score))
    return turned
