"""Draining: the process is asked to end, so each conversation stops at its next yield."""

from dataclasses import dataclass

import structlog

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Draining:
    """A flag that every conversation looks at when its loop yields."""

    has_begun: bool = False

    def begin(self) -> None:
        """Raise the flag; once raised it stays."""
        if not self.has_begun:
            self.has_begun = True
            log.info("draining: every conversation stops at its next yield")
