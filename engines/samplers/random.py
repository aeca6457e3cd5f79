"""`tc/random`: tools drawn by a job's seed, the same ones on any worker."""

import random
from collections.abc import Iterable, Sequence

from engines.chance import derive_seed
from engines.errors import ConfigurationInvalid
from engines.registry import ToolRegistry
from engines.tool import Tool


def draw(tools: ToolRegistry | Iterable[Tool], k: int, namespace: str | None, seed: int) -> list[Tool]:
    """Return exactly `k` different tools, of one namespace if given; ConfigurationInvalid when there are fewer."""
    available = pool(tools, namespace)
    if k > len(available):
        where = f"namespace {namespace!r}" if namespace is not None else "the registry"
        raise ConfigurationInvalid(f"{k} tools asked for, {len(available)} in {where}; lower k", at=("sample", "k"))
    return random.Random(derive_seed("tc/random", seed)).sample(available, k)


def pool(tools: ToolRegistry | Iterable[Tool], namespace: str | None) -> Sequence[Tool]:
    """Return what may be drawn: the first tool of each name (providers refuse two), in the order given."""
    if not isinstance(tools, ToolRegistry):
        return _distinct(tool for tool in tools if namespace in {None, tool.namespace})
    if namespace is None:
        every = tools.all_tools()
    else:
        every = tools.toolsets[namespace].tools if namespace in tools.toolsets else ()
    return _distinct(every) if tools.has_overloads else every


def _distinct(tools: Iterable[Tool]) -> list[Tool]:
    first: dict[str, Tool] = {}
    for tool in tools:
        first.setdefault(tool.qualified_name, tool)
    return list(first.values())
