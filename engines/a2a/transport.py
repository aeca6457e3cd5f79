"""What the SDK's client sends, over our own connection: checked address, bound credentials, a bounded answer."""

import httpx

from engines.network.http_client import HttpClient

# What the connection says by itself; all else of the SDK's headers goes along.
_OWN = frozenset({"accept-encoding", "connection", "content-length", "host", "user-agent"})


class OriginTransport(httpx.AsyncBaseTransport):
    """httpx's transport over one origin's client, which somebody else opens and closes; NetworkFailure passes."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send it and read the whole answer."""
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _OWN]
        content = await request.aread()
        answer = await self._client.request(request.method, str(request.url), headers=headers, content=content)
        told = [(name, value) for name, value in answer.headers.items() if name == "content-type"]
        return httpx.Response(answer.status, headers=told, content=answer.body, request=request)
