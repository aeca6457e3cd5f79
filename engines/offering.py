"""Which tools a job is offered: a pure function of the registry and of what the job says (rules U3, U4)."""

from collections.abc import Sequence
from dataclasses import dataclass

from engines.errors import ConfigurationInvalid
from engines.nearest import listed
from engines.registry import ToolRegistry
from engines.tool import TOOL_NAMESPACE_SEP, Tool
from engines.tool_settings import ALWAYS_ON, EXCLUSIVE, is_on


@dataclass(frozen=True, slots=True)
class Offer:
    """`chosen` is what a sampler may draw from; `always` is offered whatever it draws."""

    chosen: list[Tool]
    always: list[Tool]

    @property
    def tools(self) -> list[Tool]:
        """Everything, where nothing is drawn."""
        return [*self.chosen, *self.always]

    def with_draw(self, drawn: Sequence[Tool]) -> list[Tool]:
        """Return the drawn tools with every overload of theirs, in the order drawn, then those that are always on."""
        names = dict.fromkeys(tool.qualified_name for tool in drawn)
        overloads: dict[str, list[Tool]] = {name: [] for name in names}
        for tool in self.chosen:
            if tool.qualified_name in overloads:
                overloads[tool.qualified_name].append(tool)
        return [*(tool for name in names for tool in overloads[name]), *self.always]


def offer(registry: ToolRegistry, patterns: Sequence[str] | None, disabled: Sequence[str] = ()) -> Offer:
    """Return what a job is offered: its `tools` (None: all) less its `disabled_tools`, in registry order.

    In this order: what the job disables is out. An exclusive tool that the job names (itself, not by `ns::*`) is
    offered alone; one that it does not name is out. Tools that are always on are in, whatever the job chooses.
    ConfigurationInvalid for a pattern that names no tool, and for two exclusive tools.
    """
    left = registry.select(None, disabled)
    wanted = None if patterns is None else registry.names.named(patterns, "tools")
    alone = _alone(left, registry, patterns or ())
    if alone is not None:
        return Offer([], [tool for tool in left if tool.qualified_name == alone])
    chosen, always = [], []
    for tool in left:
        if is_on(tool, ALWAYS_ON):
            always.append(tool)
        elif not is_on(tool, EXCLUSIVE) and (wanted is None or tool.qualified_name in wanted):
            chosen.append(tool)
    return Offer(chosen, always)


def _alone(left: Sequence[Tool], registry: ToolRegistry, patterns: Sequence[str]) -> str | None:
    """Return the name of the exclusive tool that the job asks for."""
    exclusive = {tool.qualified_name for tool in left if is_on(tool, EXCLUSIVE)}
    if not exclusive:
        return None
    by_name = [pattern for pattern in patterns if not pattern.endswith(f"{TOOL_NAMESPACE_SEP}*")]
    named = sorted(exclusive & registry.names.named(by_name, "tools"))
    if len(named) > 1:
        raise ConfigurationInvalid(f"tools: {listed(named)} are exclusive: each is offered alone; name one of them")
    return named[0] if named else None
