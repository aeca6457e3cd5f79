"""From the tools block and its registry to the one engine that a worker talks to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from engines.calling.prepared import is_read_only
from engines.calling.result_cache import SharedCache
from engines.calling.simulation import LIVE, REFUSE, stand_in_named_by
from engines.configuration import ToolsConfiguration
from engines.converse import ConverseFor
from engines.engine import ToolEngine
from engines.errors import ConfigurationInvalid, Place, UnknownEngine
from engines.kind_settings import EngineParts
from engines.kinds import ENGINE_KINDS
from engines.multi import MultiToolEngine
from engines.nearest import hint, listed
from engines.permissions import Permissions
from engines.plain import JSONObject
from engines.registry import ToolRegistry
from engines.speak import SpeakFor
from engines.toolset import EXTERNAL_ENGINE, Toolset


def build_engine(
    configuration: ToolsConfiguration,
    registry: ToolRegistry,
    *,
    speak_for: SpeakFor,
    shared_cache: SharedCache | None = None,
    converse_for: ConverseFor | None = None,
) -> ToolEngine:
    """Build every engine that a namespace is answered by, behind one that routes; ConfigurationInvalid says where.

    Engines that are defined but not used are not built, so that a block may keep them for another day.
    """
    if EXTERNAL_ENGINE in configuration.engines:
        message = (
            f"{EXTERNAL_ENGINE!r} is what a namespace names whose calls are answered from outside; rename this one"
        )
        raise ConfigurationInvalid(message, at=("engines", EXTERNAL_ENGINE))
    for name, settings in configuration.engines.items():
        _check_kind(name, settings)
    return _Wiring(configuration, registry, speak_for, shared_cache, converse_for).wired()


_STAND_IN_KINDS = ("lm", "local")


class _Wiring:
    """One build: engines by name, each built once, with the ones under way to notice circles."""

    def __init__(
        self,
        configuration: ToolsConfiguration,
        registry: ToolRegistry,
        speak_for: SpeakFor,
        shared_cache: SharedCache | None,
        converse_for: ConverseFor | None,
    ) -> None:
        self._configuration = configuration
        self._registry = registry
        self._speak_for = speak_for
        self._shared_cache = shared_cache
        self._converse_for = converse_for
        self._built: dict[str, ToolEngine] = {}
        self._under_way: list[str] = []
        self._namespaces = self._namespaces_by_engine()

    def wired(self) -> ToolEngine:
        routes = {toolset.namespace: self._engine_of(toolset) for toolset in self._answered_here()}
        engines = {name: self.engine_named(name, ("engines", name)) for name in dict.fromkeys(routes.values())}
        permissions = Permissions.of(self._configuration.permissions, self._registry)
        return MultiToolEngine(engines, routes, permissions=permissions)

    def engine_named(self, name: str, at: Place) -> ToolEngine:
        """Return the engine, building it when it is asked for first."""
        if name in self._built:
            return self._built[name]
        if name not in self._configuration.engines:
            raise UnknownEngine(f"no engine {name!r}; {hint(name, self._configuration.engines)}", at=at)
        if name in self._under_way:
            circle = " → ".join([*self._under_way, name])
            raise ConfigurationInvalid(f"engines route in a circle: {circle}; break it", at=at)
        settings = self._configuration.engines[name]
        toolsets = tuple(self._registry.toolsets[namespace] for namespace in self._namespaces.get(name, ()))
        self._under_way.append(name)
        parts = self._parts(name, settings, toolsets, self._stand_ins_of(name, toolsets))
        self._built[name] = ENGINE_KINDS[settings["type"]](parts)
        self._under_way.pop()
        return self._built[name]

    def _parts(
        self, name: str, settings: JSONObject, toolsets: tuple[Toolset, ...], stand_ins: Mapping[str, ToolEngine]
    ) -> EngineParts:
        return EngineParts(
            name=name,
            settings=settings,
            toolsets=toolsets,
            registry=self._registry,
            speak_for=self._speak_for,
            engine_named=self.engine_named,
            shared_cache=self._shared_cache,
            stand_ins=stand_ins,
            converse_for=self._converse_for,
        )

    def _stand_ins_of(self, name: str, toolsets: Iterable[Toolset]) -> dict[str, ToolEngine]:
        """Build what plays the writers that this engine answers when their calls are simulated (decision 8)."""
        played: dict[str, list[Toolset]] = {}
        for toolset in toolsets:
            stand_in = stand_in_named_by(toolset.simulate)
            if stand_in is not None and self._next_engine(name, toolset.namespace) is None:
                played.setdefault(stand_in, []).append(toolset)
        return {stand_in: self._stand_in(stand_in, own) for stand_in, own in played.items()}

    def _stand_in(self, name: str, toolsets: Sequence[Toolset]) -> ToolEngine:
        """Build an engine apart from the one of this name, with sessions of its own; faults are the played one's."""
        at: Place = ("namespaces", toolsets[0].namespace, "simulate")
        if name not in self._configuration.engines:
            raise UnknownEngine(
                f"no engine {name!r}; {hint(name, [LIVE, REFUSE, *self._configuration.engines])}", at=at
            )
        settings = {key: value for key, value in self._configuration.engines[name].items() if key != "error_categories"}
        if settings["type"] not in _STAND_IN_KINDS:
            message = f"engine {name!r} is of type {settings['type']!r}, whose calls are real too"
            raise ConfigurationInvalid(f"{message}; name one of type {listed(_STAND_IN_KINDS)}", at=at)
        return ENGINE_KINDS[settings["type"]](self._parts(name, settings, tuple(map(_played, toolsets)), {}))

    def _answered_here(self) -> list[Toolset]:
        """Return the toolsets that engines answer, not somebody outside."""
        return [toolset for toolset in self._registry.toolsets.values() if toolset.engine != EXTERNAL_ENGINE]

    def _engine_of(self, toolset: Toolset) -> str:
        """Return the engine's name: the one the registry entry says, else the only one there is."""
        if toolset.engine is not None:
            if toolset.engine not in self._configuration.engines:
                message = f"no engine {toolset.engine!r}; {hint(toolset.engine, self._configuration.engines)}"
                raise UnknownEngine(message, at=(*self._entry_of(toolset), "engine"))
            return toolset.engine
        if len(self._configuration.engines) == 1:
            return next(iter(self._configuration.engines))
        defined = listed(self._configuration.engines)
        cause = f"several are defined ({defined})" if defined else "none is defined under engines"
        raise ConfigurationInvalid(
            f"namespace {toolset.namespace!r} names no engine and {cause}; say `engine:`", at=self._entry_of(toolset)
        )

    def _entry_of(self, toolset: Toolset) -> Place:
        """Return where the namespace's registry entry stands, as near as the entries themselves tell."""
        for index, entry in enumerate(self._configuration.registry):
            if entry.get("namespace") == toolset.namespace:
                return ("registry", index)
        return ("registry",)

    def _namespaces_by_engine(self) -> dict[str, list[str]]:
        """Return which namespaces reach which engine, also by way of engines that route."""
        reached: dict[str, list[str]] = {}
        for toolset in self._answered_here():
            name: str | None = self._engine_of(toolset)
            while name is not None and toolset.namespace not in reached.setdefault(name, []):
                reached[name].append(toolset.namespace)
                name = self._next_engine(name, toolset.namespace)
        return reached

    def _next_engine(self, name: str, namespace: str) -> str | None:
        routes = self._configuration.engines.get(name, {}).get("routes")
        return routes.get(namespace) if isinstance(routes, dict) else None


def _played(toolset: Toolset) -> Toolset:
    """Return what a stand-in plays of a toolset: the tools that are not asked themselves."""
    writers = tuple(tool for tool in toolset.tools if not is_read_only(tool))
    return replace(toolset, tools=writers, cache=None)


def _check_kind(name: str, settings: JSONObject) -> None:
    kind = settings.get("type")
    if kind not in ENGINE_KINDS:
        cause = "the type is missing" if kind is None else f"no engines of type {kind!r}"
        raise ConfigurationInvalid(f"{cause}; {hint(str(kind), ENGINE_KINDS)}", at=("engines", name, "type"))
