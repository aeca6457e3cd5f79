"""The feeder's own log: events with fields, on stderr or in a file; never on stdout, which belongs to results."""

from pathlib import Path
from typing import Any

import structlog

from producer.terminal import say


def log_to_stderr() -> None:
    """Show events to the person, one line each."""
    _configure(say)


def log_to_file(path: Path) -> None:
    """Append events to a file, one JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)

    def append(line: str) -> None:
        with path.open("a") as file:
            file.write(line + "\n")

    _configure(append, structlog.processors.JSONRenderer())


class _Lines:
    """A structlog logger that hands every finished line on."""

    def __init__(self, write: Any) -> None:
        self.info = self.warning = self.error = self.critical = self.exception = write

    def debug(self, _line: str) -> None:
        """Leave debugging out."""


def _configure(write: Any, renderer: Any = None) -> None:
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer or structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"]),
        ],
        logger_factory=lambda *_: _Lines(write),
        cache_logger_on_first_use=False,
    )
