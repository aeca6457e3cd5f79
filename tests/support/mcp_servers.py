"""MCP servers for tests, over real HTTP in this loop: an honest one, and one that says what it is told."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypedDict

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engines.plain import JSONObject

SESSION_ID = "mcp-session-id"
OBJECT: JSONObject = {"type": "object", "properties": {}}


class Sum(TypedDict):
    """What `add` gives."""

    total: int


@dataclass
class Desk:
    """What an honest server did and was asked: looked at by tests, which also hold its gate."""

    notes: dict[str, list[str]] = field(default_factory=dict)
    headers: list[dict[str, str]] = field(default_factory=list)
    waiting: asyncio.Condition = field(default_factory=asyncio.Condition)
    begun: int = 0
    cancelled: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        """Say that a call has begun, then wait for the gate; note when the wait is cancelled."""
        async with self.waiting:
            self.begun += 1
            self.waiting.notify_all()
        try:
            await self.gate.wait()
        except BaseException:
            self.cancelled += 1
            async with self.waiting:
                self.waiting.notify_all()
            raise

    async def until(self, condition: Callable[["Desk"], bool]) -> None:
        """Wait until what was noted fits."""
        async with self.waiting, asyncio.timeout(20):
            await self.waiting.wait_for(lambda: condition(self))


def desk_server(desk: Desk) -> MCPServer:
    """Return a server that keeps notes by session, adds, waits and fails."""
    server = MCPServer("desk", log_level="CRITICAL")

    @server.tool()
    def add(a: int, b: int) -> Sum:
        """Add two numbers."""
        return {"total": a + b}

    @server.tool()
    def note(text: str, ctx: Context) -> list[str]:
        """Keep a note in this session, and return all of them."""
        notes = desk.notes.setdefault(session_of(ctx), [])
        notes.append(text)
        return notes

    @server.tool()
    def whoami(ctx: Context) -> dict[str, str]:
        """Return the headers of the request."""
        desk.headers.append(headers_of(ctx))
        return desk.headers[-1]

    @server.tool()
    async def wait() -> str:
        """Wait until the test says so."""
        await desk.wait()
        return "waited"

    @server.tool()
    def boom() -> str:
        """Fail."""
        raise ToolError("no such order")

    @server.tool()
    def pieces() -> CallToolResult:
        """Return content without structure."""
        return CallToolResult(content=[TextContent(type="text", text="hi"), TextContent(type="text", text="there")])

    return server


def headers_of(ctx: Context) -> dict[str, str]:
    """Return the headers of the request that a tool is called by."""
    request = ctx.request_context.request
    return {} if request is None else dict(request.headers)


def session_of(ctx: Context) -> str:
    """Return the session that a tool is called in: a header over streamable HTTP, part of the URL over SSE."""
    request = ctx.request_context.request
    over_sse = "-" if request is None else str(request.query_params.get("session_id", "-"))
    return headers_of(ctx).get(SESSION_ID, over_sse)


class Sessions:
    """ASGI around a server: counts the sessions that were opened and ended, and every request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.opened: list[str] = []
        self.ended: list[str] = []
        self.requests: list[tuple[str, str]] = []
        self.refuse: dict[str, int] = {}
        """Methods that are answered with this status instead."""

    @property
    def open(self) -> set[str]:
        """The sessions that nobody ended."""
        return set(self.opened) - set(self.ended)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"]
        self.requests.append((method, scope["path"]))
        if method in self.refuse:
            await Response(status_code=self.refuse[method])(scope, receive, send)
            return
        given = dict(scope["headers"]).get(SESSION_ID.encode(), b"").decode()

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                session = dict(message["headers"]).get(SESSION_ID.encode(), b"").decode()
                if session and session not in self.opened:
                    self.opened.append(session)
                if method == "DELETE" and message["status"] in {200, 204}:
                    self.ended.append(given)
            await send(message)

        await self._app(scope, receive, noting)


@dataclass
class Host:
    """A server that runs in this loop."""

    port: int
    sessions: Sessions
    desk: Desk = field(default_factory=Desk)

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def served(app: ASGIApp, *, port: int = 0, **options: Any) -> AsyncIterator[Host]:
    """Serve an ASGI app on a free port (or a given one) until the block ends."""
    listening = socket.create_server(("127.0.0.1", port), reuse_port=False)
    sessions = Sessions(app)
    server = uvicorn.Server(
        uvicorn.Config(
            sessions, log_level="critical", lifespan="auto", timeout_graceful_shutdown=1, ws="none", **options
        )
    )
    # Its own way to run takes the process's signals.
    serving = asyncio.create_task(server._serve([listening]))
    try:
        async with asyncio.timeout(20):
            while not server.started:
                if serving.done():
                    await serving
                await asyncio.sleep(0.005)
        yield Host(listening.getsockname()[1], sessions)
    finally:
        server.should_exit = True
        await serving
        listening.close()


@asynccontextmanager
async def desk_host(kind: str = "http", *, port: int = 0, **options: Any) -> AsyncIterator[Host]:
    """Serve the honest server over streamable HTTP (at /mcp) or SSE (at /sse)."""
    desk = Desk()
    server = desk_server(desk)
    app = server.sse_app() if kind == "sse" else server.streamable_http_app()
    async with served(app, port=port, **options) as host:
        host.desk = desk
        yield host
        desk.gate.set()


Answer = Callable[[JSONObject], Any]


@dataclass
class Liar:
    """A server that answers each method as the test says, over the older protocol (a session by its id).

    An answer is a result (a dict), an ASGI response, or an awaitable of either. `tools` is what it lists, one page.
    """

    tools: list[JSONObject] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[JSONObject] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    listings: int = 0

    def app(self) -> ASGIApp:
        """Return the app, at /mcp."""
        return Starlette(routes=[Route("/mcp", self._endpoint, methods=["GET", "POST", "DELETE"])])

    async def _endpoint(self, request: Request) -> Response:
        if request.method == "GET":
            return Response(status_code=405)
        session = request.headers.get(SESSION_ID)
        if request.method == "DELETE":
            self.known.discard(session or "")
            return Response(status_code=204)
        message = json.loads(await request.body())
        self.asked.append(message)
        if "id" not in message or "method" not in message:
            return Response(status_code=202)
        if session is not None and session not in self.known:
            return Response("who?", status_code=404)
        answer = self._answer(message)
        if hasattr(answer, "__await__"):
            answer = await answer
        if isinstance(answer, Response):
            return answer
        headers = {}
        if message["method"] == "initialize":
            headers[SESSION_ID] = f"session-{len(self.known)}"
            self.known.add(headers[SESSION_ID])
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], **answer}, headers=headers)

    def _answer(self, message: JSONObject) -> Any:
        method = message["method"]
        if method == "tools/list":
            self.listings += 1
        if method in self.answers:
            answer = self.answers[method](message)
            return {"result": answer} if isinstance(answer, dict) and "error" not in answer else answer
        if method == "initialize":
            info = {"name": "liar", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            return {"result": {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}}
        if method == "tools/list":
            return {"result": {"tools": self.tools}}
        if method == "tools/call":
            return {"result": {"content": [{"type": "text", "text": message["params"]["name"]}]}}
        return {"error": {"code": -32601, "message": "Method not found"}}


def listed(name: str = "look", **more: Any) -> JSONObject:
    """Return a tool as a server lists it."""
    return {"name": name, "description": f"does {name}", "inputSchema": OBJECT, **more}


def events(*messages: JSONObject) -> StreamingResponse:
    """Return an event stream of these messages."""
    lines = [f"event: message\ndata: {json.dumps(message)}\n\n" for message in messages]
    return StreamingResponse(iter(lines), media_type="text/event-stream")
