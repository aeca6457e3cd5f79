"""`tc/fan_out` and `tc/fan_in`: one tool that feeds all others, or one that all others feed."""

import random
from collections.abc import Sequence

from engines.chance import derive_seed
from engines.configuration import SampleSettings
from engines.samplers.errors import SamplingError
from engines.samplers.graph import Graph, by_weight
from engines.samplers.prepare import Draw, Index
from engines.tool import Tool


def prepare_fan_out(tools: Sequence[Tool], settings: SampleSettings, index: Index) -> Draw:
    """Draw a tool and `k` - 1 that can use what it gives; it comes first (rule D82)."""
    return _star(Graph.of(tools, settings, index), settings, others="successors")


def prepare_fan_in(tools: Sequence[Tool], settings: SampleSettings, index: Index) -> Draw:
    """Draw a tool and `k` - 1 whose results it can use; it comes last (rule D82)."""
    inward = _star(Graph.of(tools, settings, index), settings, others="predecessors")

    def draw(seed: int) -> list[Tool]:
        sink, *predecessors = inward(seed)
        return [*predecessors, sink]

    return draw


def prepare_neighbor(tools: Sequence[Tool], settings: SampleSettings, index: Index) -> Draw:
    """Draw a tool and `k` - 1 of those most like it: tools that belong together, whether or not one feeds another."""
    return _star(Graph.of(tools, settings, index), settings, others="neighbors")


def _star(graph: Graph, settings: SampleSettings, *, others: str) -> Draw:
    """Draw a middle, all alike that have enough others, then the others by their scores; the middle comes first."""
    needed = settings.k - 1
    middles = graph.with_at_least(needed)

    def draw(seed: int) -> list[Tool]:
        if not middles:
            best = max(graph.edges, key=lambda name: len(graph.edges[name]), default=None)
            found = [] if best is None else [best, *(name for name, _ in graph.edges[best])]
            message = (
                f"a tool with {needed} {others} asked for, the most that one has are {max(0, len(found) - 1)}; "
                "lower k or min_score"
            )
            raise SamplingError(message, requested=settings.k, tools=graph.named(found))
        chance = random.Random(derive_seed(settings.type, seed))
        middle = chance.choice(middles)
        return graph.named([middle, *by_weight(graph.edges.get(middle, ()), chance)[:needed]])

    return draw
