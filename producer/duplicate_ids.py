"""Notices a job id that stands twice, in bounded memory however many jobs there are."""

import sqlite3
from types import TracebackType
from typing import Self

_CACHE_KIBIBYTES = 64 * 1024


class SeenIds:
    """The job ids read so far and the line each stood in; grows on disk, not in memory."""

    def __init__(self) -> None:
        # An empty name makes a private database that SQLite keeps in its cache and spills to a temporary file.
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute(f"PRAGMA cache_size = -{_CACHE_KIBIBYTES}")
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("CREATE TABLE ids (id TEXT PRIMARY KEY, line INTEGER NOT NULL) WITHOUT ROWID")
        self._database.execute("BEGIN")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._database.close()

    def first_line_of(self, job_id: str, line: int) -> int | None:
        """Note that `job_id` stands in `line`; the earlier line it stands in, or None when it is new."""
        added = self._database.execute("INSERT OR IGNORE INTO ids VALUES (?, ?)", (job_id, line))
        if added.rowcount == 1:
            return None
        (earlier,) = self._database.execute("SELECT line FROM ids WHERE id = ?", (job_id,)).fetchone()
        return int(earlier)
