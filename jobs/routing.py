"""Which queue a job goes to: a pure function of the namespaces of its tools."""

from collections.abc import Iterable, Mapping

from engines.tool import Tool
from engines.toolset import Toolset

CONVERSATIONS_QUEUE = "conversations"
NAMESPACE_QUEUE_PREFIX = "ns."

Route = tuple[str, ...]
"""The stateful namespaces that a job touches, sorted; () for a stateless job."""


def route_of(tools: Iterable[Tool], toolsets: Mapping[str, Toolset]) -> Route:
    """Return the stateful namespaces among the tools offered to a job, sorted."""
    return tuple(sorted({tool.namespace for tool in tools if toolsets[tool.namespace].stateful}))


def queue_of(route: Route, limits: Mapping[str, int]) -> str:
    """Return the queue of a route: its scarcest namespace's, else the one of all conversations."""
    if not route:
        return CONVERSATIONS_QUEUE
    scarcest = min(route, key=lambda namespace: (limits.get(namespace, 1), namespace))
    return NAMESPACE_QUEUE_PREFIX + scarcest


def permit_limits(toolsets: Mapping[str, Toolset]) -> dict[str, int]:
    """Return the cluster-wide number of permits of each stateful namespace (one where nothing else is said)."""
    return {
        namespace: toolset.max_concurrency if toolset.max_concurrency is not None else 1
        for namespace, toolset in toolsets.items()
        if toolset.stateful
    }
