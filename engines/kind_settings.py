"""What every kind of engine may be told, and what its builder is given."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from engines.calling.faults import ErrorCategory
from engines.calling.result_cache import SharedCache
from engines.converse import ConverseFor
from engines.errors import ConfigurationInvalid, Place
from engines.nearest import listed
from engines.plain import JSONObject, canonical
from engines.registry import ToolRegistry
from engines.speak import SpeakFor
from engines.toolset import Toolset

if TYPE_CHECKING:
    from engines.engine import ToolEngine


class EngineSettings(BaseModel):
    """The keys all kinds share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str
    error_categories: tuple[ErrorCategory, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineParts:
    """What an engine is built of: its row of `tools.engines`, the namespaces it answers, and its surroundings."""

    name: str
    settings: JSONObject
    toolsets: tuple[Toolset, ...]
    registry: ToolRegistry
    speak_for: SpeakFor
    engine_named: "Callable[[str, Place], ToolEngine]"
    """Builds another engine of the block, for a kind that routes; the place is blamed when there is none."""

    shared_cache: SharedCache | None = None
    """Where results are kept for the whole cluster; None: in this process only."""

    stand_ins: "Mapping[str, ToolEngine]" = field(default_factory=dict)
    """The engines that these toolsets name under `simulate`, each with sessions of its own."""

    converse_for: ConverseFor | None = None
    """Holds the conversations of other recipes; None where nobody can."""

    def contract(self, settings: EngineSettings) -> dict[str, Any]:
        """Return what every engine's constructor passes on to `ToolEngine`: `cls(..., **parts.contract(settings))`."""
        return {
            "error_categories": tuple(
                self._with_names(category, (*self.at, "error_categories", index))
                for index, category in enumerate(settings.error_categories)
            ),
            "shared_cache": self.shared_cache,
            "cache_scope": self._cache_scope,
            "stand_ins": self.stand_ins,
        }

    @property
    def _cache_scope(self) -> str:
        """Tell this backend and account from others; a digest, since the settings hold secrets by now."""
        if not any(toolset.cache for toolset in self.toolsets):
            return ""
        return hashlib.sha256(canonical(self.settings).encode()).hexdigest()

    def _with_names(self, category: ErrorCategory, at: Place) -> ErrorCategory:
        """Return the category with the names that its patterns mean; ConfigurationInvalid when they are not ours."""
        if category.tools is None:
            return category
        names = self.registry.names.named(category.tools, "tools", at=at)
        own = {tool.qualified_name for toolset in self.toolsets for tool in toolset.tools}
        if strangers := names - own:
            message = f"tools: {listed(sorted(strangers))} is not answered by engine {self.name!r}"
            raise ConfigurationInvalid(f"{message}; it can fail only where it is answered", at=at)
        return category.model_copy(update={"tools": tuple(sorted(names))})

    @property
    def at(self) -> Place:
        """Where the settings stand in the block."""
        return ("engines", self.name)
