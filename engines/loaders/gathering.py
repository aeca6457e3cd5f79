"""The tools of all registry entries as they come in: settings put over them, doubles refused, disabled ones noted."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engines.configuration import NamespaceSettings, ToolsConfiguration
from engines.errors import ConfigurationInvalid, DuplicateDefinition, InvalidTool, Place, written
from engines.name_patterns import EVERY_TOOL
from engines.nearest import hint
from engines.schemas import checked_schema
from engines.tool import Tool
from engines.tool_settings import adjusted, is_enabled
from engines.toolset import Toolset

_PLAIN = NamespaceSettings()


@dataclass(frozen=True, slots=True)
class Found:
    """A tool, where its entry stands, and whether it gives way to another of its name (rule U1)."""

    tool: Tool
    at: Place
    gives_way: bool


@dataclass(slots=True)
class Gathering:
    """One load: everything found so far."""

    settings: Mapping[str, NamespaceSettings]
    found: list[Found] = field(default_factory=list)
    engines: dict[str, str] = field(default_factory=dict)
    off: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, configuration: ToolsConfiguration) -> "Gathering":
        """Begin a load of this block."""
        return cls(configuration.namespaces)

    def is_switched_off(self, namespace: str | None) -> bool:
        """Whether the recipe disables the namespace, so that nothing of it is loaded or connected (rule E9)."""
        return namespace is not None and not self._of(namespace).enabled

    def leave_out(self, namespace: str) -> None:
        """Know the namespace by name, without any of its tools."""
        self.off.setdefault(namespace, set()).add(EVERY_TOOL)

    def add(self, tool: Tool, at: Place, *, gives_way: bool = False) -> None:
        """Take a loaded tool in; ConfigurationInvalid, at its entry, for one that cannot be used."""
        if self.is_switched_off(tool.namespace):
            self.leave_out(tool.namespace)
            return
        namespace = self._of(tool.namespace)
        try:
            tool = adjusted(tool, namespace.tools.get(tool.name), namespace)
            if not is_enabled(tool):
                self.off.setdefault(tool.namespace, set()).add(tool.name)
                return
            _check(tool, namespace)
        except InvalidTool as error:
            raise ConfigurationInvalid(str(error), at=at) from error
        self.found.append(Found(tool, at, gives_way))

    def answered_by(self, namespace: str, engine: str, at: Place) -> None:
        """Note which engine answers a namespace; one has one engine (rule D66)."""
        if self.engines.setdefault(namespace, engine) != engine:
            message = f"namespace {namespace!r} is already answered by engine {self.engines[namespace]!r}"
            raise ConfigurationInvalid(f"{message}; give these tools another namespace", at=(*at, "engine"))

    def toolsets(self) -> list[Toolset]:
        """Return a toolset for each namespace; one with nothing but switched off tools has no tools."""
        tools: dict[str, list[Tool]] = {}
        for found in self._without_doubles():
            tools.setdefault(found.tool.namespace, []).append(found.tool)
        for namespace in self.off:
            tools.setdefault(namespace, [])
        self._check_names(tools)
        return [self._toolset(namespace, own) for namespace, own in tools.items()]

    def _toolset(self, namespace: str, tools: list[Tool]) -> Toolset:
        settings = self._of(namespace)
        return Toolset(
            namespace=namespace,
            engine=self.engines.get(namespace),
            tools=tuple(tools),
            defaults=settings.defaults,
            stateful=settings.stateful,
            max_concurrency=settings.max_concurrency,
            simulate=settings.simulate,
            cache=settings.cache,
            disabled=frozenset(self.off.get(namespace, ())) - {tool.name for tool in tools},
        )

    def _without_doubles(self) -> list[Found]:
        """Return what stays: those that give way go, and what is left must be different (rules U1, D69)."""
        standing = {each.tool.qualified_name for each in self.found if not each.gives_way}
        first_entry = {each.tool.qualified_name: each.at for each in reversed(self.found)}
        kept: dict[tuple[str, str], Found] = {}
        for each in self.found:
            name = each.tool.qualified_name
            if each.gives_way and (name in standing or each.at != first_entry[name]):
                continue
            key = (name, each.tool.fingerprint)
            if key in kept:
                raise DuplicateDefinition(_defined_twice(name, kept[key].at, each.at), at=each.at)
            kept[key] = each
        return list(kept.values())

    def _check_names(self, tools: Mapping[str, list[Tool]]) -> None:
        """Refuse settings for a namespace or a tool that is not there: a typo must not go unnoticed."""
        for namespace, settings in self.settings.items():
            if namespace not in tools:
                message = f"no tools in namespace {namespace!r}; {hint(namespace, tools)}"
                raise ConfigurationInvalid(message, at=("namespaces", namespace))
            off = self.off.get(namespace, set())
            there = {tool.name for tool in tools[namespace]} | off
            for name in settings.tools:
                if name not in there and EVERY_TOOL not in off:
                    message = f"no tool {name!r} in namespace {namespace!r}; {hint(name, there)}"
                    raise ConfigurationInvalid(message, at=("namespaces", namespace, "tools", name))

    def _of(self, namespace: str) -> NamespaceSettings:
        return self.settings.get(namespace, _PLAIN)


def _check(tool: Tool, namespace: NamespaceSettings) -> None:
    """Compile the schemas now: a broken one must stop `submit`, not ten thousand conversations."""
    checked_schema(tool.parameters, of=f"tool {tool.qualified_name!r}: parameters")
    if tool.output_parameters is not None:
        checked_schema(tool.output_parameters, of=f"tool {tool.qualified_name!r}: output_parameters")
    Toolset(tool.namespace, None, (), namespace.defaults).defaults_for(tool)


def _defined_twice(name: str, first: Place, second: Place) -> str:
    where = "" if first == second else f" (first in {written(first)})"
    way_out = "remove one" if first == second else "remove one, or write `on_duplicate: skip` in the one to give way"
    return f"tool {name!r} is defined twice with the same parameters{where}; {way_out}"
