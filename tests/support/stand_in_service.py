"""Stand-ins for services that give documents or vectors: real servers on this machine, whose answers a test decides."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from tests.support.http_backend import HttpBackend, Received, Reply, http_backend


def service(answer: Callable[[Received], tuple[int, Any]]) -> AbstractAsyncContextManager[HttpBackend]:
    """Serve until the block ends; an answer is a status and a body: text is HTML, all else JSON."""

    async def answered(request: Received) -> Reply:
        status, body = answer(request)
        if isinstance(body, str):
            return Reply(body.encode(), status, {"content-type": "text/html; charset=utf-8"})
        return Reply(body, status)

    return http_backend(answered)
