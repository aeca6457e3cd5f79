"""A server that is asked for documents: one HTTP client for all sessions, its failures as a call's failures."""

import json
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from engines.errors import ToolFailed
from engines.network.connection import ConnectionSettings
from engines.network.failures import NetworkFailure
from engines.rest.answer import raise_failed, value_or_failure
from engines.tool import ErrorType

if TYPE_CHECKING:
    from engines.network.answers import Answer
    from engines.network.http_client import HttpClient


class SearchServer:
    """Sends requests to the settings' `url`, and to nothing else."""

    def __init__(self, settings: ConnectionSettings, name: str) -> None:
        self._settings = settings
        self._name = name
        self._client: HttpClient | None = None

    async def open(self) -> None:
        """Make the client; nothing is contacted yet."""
        from engines.network.http_client import HttpClient  # noqa: PLC0415 (heavy, and only searches online need it)

        self._client = HttpClient(self._settings)
        await self._client.open()

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def ask(
        self, method: str, target: str, *, headers: Iterable[tuple[str, str]] = (), body: Any = None
    ) -> "Answer":
        """Return the server's answer, of any status; ToolFailed when there is none. A body is sent as JSON."""
        if self._client is None:
            raise ToolFailed(ErrorType.execution, f"{self._name} was asked before its engine was opened")
        content = b"" if body is None else json.dumps(body).encode()
        if body is not None:
            headers = [*headers, ("content-type", "application/json")]
        try:
            return await self._client.request(method, target, headers=headers, content=content)
        except NetworkFailure as failure:
            raise_failed(failure)

    def value(self, answer: "Answer") -> Any:
        """Return what a 2xx answer says; ToolFailed for any other status."""
        try:
            return value_or_failure(
                answer.status,
                answer.body,
                content_type=answer.content_type,
                retry_after=answer.headers.get("retry-after"),
                date=answer.headers.get("date"),
                now=time.time(),
            )
        except ToolFailed as failure:
            failure.message = f"{self._name}: {failure.message}"
            raise
