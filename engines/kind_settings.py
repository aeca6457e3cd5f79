"""What every kind of engine may be told, and what its builder is given."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from engines.errors import Place
from engines.faults import ErrorCategory
from engines.plain import JSONObject
from engines.registry import ToolRegistry
from engines.result_cache import SharedCache
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

    def contract(self, settings: EngineSettings) -> dict[str, Any]:
        """Return what every engine's constructor passes on to `ToolEngine`: `cls(..., **parts.contract(settings))`."""
        return {"error_categories": settings.error_categories, "shared_cache": self.shared_cache}

    @property
    def at(self) -> Place:
        """Where the settings stand in the block."""
        return ("engines", self.name)
