"""Which queue a job goes to: a pure function of the namespaces of its tools."""

from collections.abc import Iterable, Mapping

from engines.recipes.sub_agent import stateful_namespaces
from engines.tool import Tool
from engines.toolset import Toolset

CONVERSATIONS_QUEUE = "conversations"
NAMESPACE_QUEUE_PREFIX = "ns."

Route = tuple[str, ...]
"""The stateful namespaces that a job touches, also by way of its sub-agents, sorted; () for a stateless job."""


def route_of(tools: Iterable[Tool], toolsets: Mapping[str, Toolset]) -> Route:
    """Return the stateful namespaces among the tools offered to a job, sorted."""
    offered = list(tools)
    own = {tool.namespace for tool in offered if toolsets[tool.namespace].stateful}
    return tuple(sorted(own | stateful_namespaces(offered).keys()))


def queue_of(route: Route, limits: Mapping[str, int]) -> str:
    """Return the queue of a route: its scarcest namespace's, else the one of all conversations."""
    if not route:
        return CONVERSATIONS_QUEUE
    scarcest = min(route, key=lambda namespace: (limits.get(namespace, 1), namespace))
    return NAMESPACE_QUEUE_PREFIX + scarcest


def permit_limits(toolsets: Mapping[str, Toolset]) -> dict[str, int]:
    """Return the cluster-wide number of permits of each stateful namespace (one where nothing else is said).

    Where a recipe and a sub-agent of it both say a number for the same namespace, the smaller one holds.
    """
    own = {
        namespace: toolset.max_concurrency if toolset.max_concurrency is not None else 1
        for namespace, toolset in toolsets.items()
        if toolset.stateful
    }
    behind = stateful_namespaces(tool for toolset in toolsets.values() for tool in toolset.tools)
    return {name: min(limits[name] for limits in (own, behind) if name in limits) for name in (own | behind)}
