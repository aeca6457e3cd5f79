"""Which tools a name or a pattern means: `ns::tool`, `ns::*`, or a name that only one namespace has (rule E6)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engines.errors import ConfigurationInvalid, Place
from engines.nearest import hint, listed
from engines.tool import TOOL_NAMESPACE_SEP

EVERY_TOOL = "*"
_EVERYTHING = f"{TOOL_NAMESPACE_SEP}{EVERY_TOOL}"


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names of a registry's tools: those that are there, and those that are switched off (`*`: all of a namespace).

    What is switched off is known, so that a job which names it is no mistake; it means nothing all the same.
    """

    there: Mapping[str, Sequence[str]]
    off: Mapping[str, frozenset[str]]

    def means(self, pattern: str) -> frozenset[str] | None:
        """Return the qualified names that a pattern means; None when it names nothing that is known."""
        namespace = pattern.removesuffix(_EVERYTHING)
        if namespace != pattern:
            known = namespace in self.there or namespace in self.off
            return frozenset(self._qualified_in(namespace)) if known else None
        namespace, separator, name = pattern.partition(TOOL_NAMESPACE_SEP)
        if not separator:
            return self._unqualified(pattern)
        if name in self.there.get(namespace, ()):
            return frozenset({pattern})
        off = self.off.get(namespace, frozenset())
        return frozenset() if name in off or EVERY_TOOL in off else None

    def named(self, patterns: Iterable[str], key: str = "", *, at: Place = ()) -> set[str]:
        """Return the names that any of the patterns means; `key` begins the message where no place says it.

        ConfigurationInvalid names the nearest tool for a pattern that means none: a typo must not go unnoticed.
        """
        prefix = f"{key}: " if key else ""
        names: set[str] = set()
        for pattern in patterns:
            try:
                meant = self.means(pattern)
            except ConfigurationInvalid as error:
                raise ConfigurationInvalid(f"{prefix}{error.message}", at=at) from error
            if meant is None:
                raise ConfigurationInvalid(f"{prefix}no tool {pattern!r}; {hint(pattern, self._spellings())}", at=at)
            names |= meant
        return names

    def _unqualified(self, name: str) -> frozenset[str] | None:
        namespaces = [namespace for namespace, names in self.there.items() if name in names]
        if len(namespaces) > 1:
            spellings = listed(f"{namespace}{TOOL_NAMESPACE_SEP}{name}" for namespace in namespaces)
            raise ConfigurationInvalid(f"{name!r} is the name of several tools ({spellings}); say which")
        if namespaces:
            return frozenset({f"{namespaces[0]}{TOOL_NAMESPACE_SEP}{name}"})
        return frozenset() if any(name in names for names in self.off.values()) else None

    def _qualified_in(self, namespace: str) -> list[str]:
        return [f"{namespace}{TOOL_NAMESPACE_SEP}{name}" for name in self.there.get(namespace, ())]

    def _spellings(self) -> list[str]:
        every = [name for namespace in self.there for name in self._qualified_in(namespace)]
        return [*every, *(namespace + _EVERYTHING for namespace in self.there)]
