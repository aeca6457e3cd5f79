"""Wire names: providers allow `[A-Za-z0-9_-]{1,64}`, so the tool `ns::tool` travels as `ns__tool` (D6, decision 12)."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from engines.tool import TOOL_NAMESPACE_SEP, Tool

WIRE_NAME_LENGTH = 64
WIRE_SEPARATOR = "__"
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
_NOTHING: Mapping[str, str] = MappingProxyType({})


class WireNames:
    """The two-way table of one selection of tools.

    A name that is too long, or that two tools would share, carries a piece of the digest of its qualified name; so the
    table depends on the set of tools alone, never on their order.
    """

    __slots__ = ("_qualified", "_wire")

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Overloads (same qualified name, other schema) share one wire name."""
        self._take(_assigned({tool.qualified_name for tool in tools}))

    def _take(self, wire: dict[str, str]) -> None:
        self._wire = wire
        self._qualified = {wire: qualified for qualified, wire in self._wire.items()}

    def with_tool(self, tool: Tool) -> "WireNames":
        """This table with one more tool; the names that a history may hold by now stay as they are."""
        if tool.qualified_name in self._wire:
            return self
        extended = WireNames(())
        extended._take(self._wire | _assigned({tool.qualified_name}, taken=self._qualified))
        return extended

    def encode(self, qualified: str) -> str:
        """The wire name of a tool of this selection; KeyError for any other."""
        return self._wire[qualified]

    def decode(self, wire: str) -> str | None:
        """The qualified name behind a wire name; a model that said `ns::tool` itself is understood too."""
        if wire in self._wire:
            return wire
        return self._qualified.get(wire)

    def __len__(self) -> int:
        """How many tools have a name here."""
        return len(self._wire)


def legal_name(name: str) -> str:
    """Any text as a legal wire name, cut to length: what a model made up must not poison the history."""
    cleaned = _FORBIDDEN.sub("_", name.replace(TOOL_NAMESPACE_SEP, WIRE_SEPARATOR))
    return cleaned[:WIRE_NAME_LENGTH]


def _assigned(qualified_names: set[str], *, taken: Mapping[str, str] = _NOTHING) -> dict[str, str]:
    plain = {name: _FORBIDDEN.sub("_", name.replace(TOOL_NAMESPACE_SEP, WIRE_SEPARATOR)) for name in qualified_names}
    uses = Counter([*plain.values(), *taken])
    assigned = {name: wire for name, wire in plain.items() if uses[wire] == 1 and len(wire) <= WIRE_NAME_LENGTH}
    used = {*assigned.values(), *taken}
    for name in sorted(qualified_names - assigned.keys()):
        assigned[name] = _with_digest(plain[name], name, used)
        used.add(assigned[name])
    return assigned


def _with_digest(plain: str, qualified: str, taken: set[str]) -> str:
    """The name with as much of the digest as it takes to be alone; all of it always is."""
    digest = hashlib.sha256(qualified.encode()).hexdigest()
    wires = (f"{plain[: WIRE_NAME_LENGTH - digits - 1]}_{digest[:digits]}" for digits in range(8, WIRE_NAME_LENGTH))
    return next((wire for wire in wires if wire not in taken), digest)
