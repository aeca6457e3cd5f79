"""Registries with a known dataflow, and samplers of them, for the tests of the draws."""

from collections.abc import Mapping, Sequence
from typing import Any

from engines.configuration import SampleSettings
from engines.registry import ToolRegistry
from engines.samplers.sampler import Sampler, build_sampler
from engines.tool import Tool
from engines.toolset import Toolset

Edges = Mapping[str, Mapping[str, float]]


def registry_of(names: Sequence[str], artifacts: Mapping[str, Any] | None = None) -> ToolRegistry:
    """Return tools of these qualified names."""
    toolsets: dict[str, list[Tool]] = {}
    for qualified in names:
        namespace, _, name = qualified.rpartition("::")
        toolsets.setdefault(namespace or "n", []).append(Tool(name, namespace or "n"))
    return ToolRegistry(
        [Toolset(namespace, None, tuple(tools)) for namespace, tools in toolsets.items()],
        enrich=lambda found: (found, artifacts or {}),
    )


def dataflow(edges: Edges) -> dict[str, Any]:
    """Return the artifact of these edges, as the enrichment leaves it."""
    turned: dict[str, list[list[Any]]] = {}
    for name, others in edges.items():
        for other, score in others.items():
            turned.setdefault(f"n::{other}", []).append([f"n::{name}", score])
    out = {
        f"n::{name}": [[f"n::{other}", score, []] for other, score in others.items()] for name, others in edges.items()
    }
    return {"out": out, "in": turned}


def sampler_of(edges: Edges, kind: str, k: int, **settings: Any) -> Sampler:
    """Return a sampler over the tools of the edges; the same edges serve as neighbors."""
    names = list(dict.fromkeys([*edges, *(other for others in edges.values() for other in others)]))
    flow = dataflow(edges)
    registry = registry_of(names, {"dataflow": flow, "neighbors": {"near": flow["out"]}})
    return build_sampler(SampleSettings.model_validate({"type": kind, "k": k, **settings}), registry)


def drawn(sampler: Sampler, seed: int, **overrides: Any) -> list[str]:
    """Return the names of one draw."""
    return [tool.name for tool in sampler.sample(seed=seed, **overrides)]
