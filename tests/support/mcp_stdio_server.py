"""A small MCP server for tests that is a process, up in milliseconds: `python … [how it misbehaves | sse PORT]`."""

import json
import os
import signal
import sys

NOTHING = {"type": "object", "properties": {}}
SIZE = {"type": "object", "properties": {"size": {"type": "integer"}}}
TOOLS = {"count": NOTHING, "environment": NOTHING, "whoami": NOTHING, "die": NOTHING, "shout": SIZE}


class Desk:
    """Answers the tools; counts the calls of its process."""

    def __init__(self) -> None:
        self.calls = 0

    def call(self, name: str, arguments: dict[str, int]) -> object:
        match name:
            case "count":
                self.calls += 1
                return self.calls
            case "environment":
                return dict(os.environ)
            case "whoami":
                return os.getpid()
            case "shout":
                return "x" * arguments["size"]
            case _:
                os.kill(os.getpid(), signal.SIGKILL)
                return None


def answered(desk: Desk, message: dict[str, object]) -> dict[str, object]:
    """Return the result, or the error, of one request."""
    params: dict[str, object] = message.get("params") or {}  # type: ignore[assignment]
    match message["method"]:
        case "initialize":
            info = {"name": "desk", "version": "1"}
            version = params["protocolVersion"]
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list":
            tools = [{"name": name, "description": name, "inputSchema": schema} for name, schema in TOOLS.items()]
            return {"result": {"tools": tools}}
        case "tools/call":
            value = desk.call(str(params["name"]), params.get("arguments") or {})  # type: ignore[arg-type]
            return {"result": {"content": [], "structuredContent": {"result": value}}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def over_stdio() -> None:
    """Serve until stdin ends."""
    desk = Desk()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answered(desk, message)}), flush=True)


def over_sse(port: int) -> None:
    """Serve `count` over SSE, by the protocol's own library."""
    from mcp.server.mcpserver import MCPServer

    server, desk = MCPServer("desk", log_level="CRITICAL"), Desk()

    @server.tool()
    def count() -> int:
        """Count the calls of this process."""
        desk.calls += 1
        return desk.calls

    server.run("sse", port=port)


def main(how: str = "", *more: str) -> None:
    """Misbehave as told, then serve."""
    match how:
        case "sse":
            over_sse(int(more[0]))
            return
        case "noise":
            print("Welcome to the desk!\n\n{not json", flush=True)
        case "stderr":
            sys.stderr.write("warning: trouble ahead\n" * 100_000)
        case "refuse":
            sys.stderr.write(f"cannot open the database with {os.environ.get('DESK_PASSWORD')}\n")
            sys.exit(3)
        case _:
            pass
    over_stdio()


main(*sys.argv[1:])
