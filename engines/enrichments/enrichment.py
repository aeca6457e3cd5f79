"""What an enrichment is: it looks at all tools, and adds to them or leaves an artifact for the samplers."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from engines.errors import Place
from engines.plain import JSONObject
from engines.speak import Speak
from engines.tool import Tool


@dataclass(slots=True)
class Material:
    """What enrichments work on, one after the other: the tools (replaced, never changed) and the artifacts by key."""

    tools: list[Tool]
    artifacts: dict[str, Any] = field(default_factory=dict)


class Enrichment(Protocol):
    """One pass over the tools."""

    @property
    def artifact_key(self) -> str | None:
        """The artifact it leaves; None when it only adds to the tools."""

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The artifacts without which it cannot run."""

    @property
    def reads_outputs(self) -> bool:
        """Whether it looks at the tools' output schemas, and so runs after whatever completes them."""

    async def enrich(self, material: Material) -> None:
        """Do it; raises ConfigurationInvalid when it cannot be done."""


class EnrichmentSettings(BaseModel):
    """The keys all kinds share; `force` works everything out again, whatever is kept from earlier."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str
    force: bool = False


OpenSpeak = Callable[[JSONObject], AbstractAsyncContextManager[Speak]]
"""Opens the model of an `lm_config` for as long as it is needed; ValueError for one that cannot be used."""


@dataclass(frozen=True, slots=True)
class EnrichmentParts:
    """What an enrichment is built of: its row of `tools.enrichments`, references resolved, and its surroundings."""

    settings: JSONObject
    at: Place
    cache_folder: Path | None = None
    open_speak: OpenSpeak | None = None
