"""The sampler of a recipe: its settings and its registry, ready to draw for any job."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from engines.configuration import SampleSettings
from engines.errors import ConfigurationInvalid
from engines.nearest import hint
from engines.plain import JSONObject
from engines.registry import ToolRegistry
from engines.samplers.kinds import SAMPLER_KINDS
from engines.samplers.pool import pool
from engines.samplers.prepare import Draw
from engines.tool import Tool


@dataclass(frozen=True, slots=True)
class Sampler:
    """Draws tools; nothing in it changes, so that any number of jobs may draw at once (rule D82)."""

    settings: SampleSettings
    registry: ToolRegistry

    def sample(self, *, seed: int, tools: Sequence[Tool] | None = None, **overrides: Any) -> list[Tool]:
        """Return exactly `k` tools, of the registry or of these; SamplingError when there are none such (rule D81).

        `overrides` replace settings for this draw; names that no setting has are ignored, so that a caller may tell
        all samplers the same.
        """
        return self._prepared(tools, self._with(overrides))(seed)

    def for_job(self, tools: Sequence[Tool] | None = None) -> Draw:
        """Return the draws among the tools that a job leaves (None: all); fewer than `k` are all offered."""
        if tools is not None:
            left = pool(tools, self.settings.namespace)
            if len(left) < self.settings.k:
                return lambda _seed: list(left)
        return self._prepared(tools, self.settings)

    def _prepared(self, tools: Sequence[Tool] | None, settings: SampleSettings) -> Draw:
        kind = SAMPLER_KINDS[settings.type]
        available = self.registry.all_tools() if tools is None else tools
        return kind.prepare(available, settings, kind.index_in(self.registry.artifacts))

    def _with(self, overrides: dict[str, Any]) -> SampleSettings:
        known = {name: value for name, value in overrides.items() if name in SampleSettings.model_fields}
        return SampleSettings.model_validate({**self.settings.model_dump(), **known}) if known else self.settings


def build_sampler(settings: SampleSettings, registry: ToolRegistry) -> Sampler:
    """Return the sampler; ConfigurationInvalid when an artifact that it needs is not there (rule D80)."""
    for artifact in SAMPLER_KINDS[settings.type].required_artifacts:
        if artifact not in registry.artifacts:
            message = f"{settings.type} needs the artifact {artifact!r}; add `- type: {artifact}` to tools.enrichments"
            raise ConfigurationInvalid(message, at=("sample", "type"))
    return Sampler(settings, registry)


def artifacts_to_pin(settings: SampleSettings | None, registry: ToolRegistry) -> JSONObject:
    """Return of the registry's artifacts just what draws on the workers need: names and scores of one index."""
    kind = SAMPLER_KINDS[settings.type] if settings is not None else None
    if kind is None or not kind.index:
        return {}
    needed: Any = {
        name: [list(edge[:2]) for edge in edges] for name, edges in kind.index_in(registry.artifacts).items()
    }
    for key in reversed(kind.index):
        needed = {key: needed}
    return cast("JSONObject", needed)


def check_sample(settings: SampleSettings, registry: ToolRegistry) -> None:
    """Refuse, before any job is looked at, a draw that no job could have."""
    sampler = build_sampler(settings, registry)
    named = [("namespace", settings.namespace)] if settings.namespace is not None else []
    named += [("namespace_weights", namespace) for namespace in settings.namespace_weights or {}]
    for key, namespace in named:
        if namespace not in registry.toolsets:
            message = f"no tools in namespace {namespace!r}; {hint(namespace, registry.toolsets)}"
            raise ConfigurationInvalid(message, at=("sample", key))
    sampler.sample(seed=0)
