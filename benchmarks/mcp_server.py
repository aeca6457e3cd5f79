"""An MCP server for benchmarks, of mcp's own library: one tool with a small structured answer; prints its address."""

import logging
import socket
from typing import TypedDict

import uvicorn
from mcp.server.mcpserver import MCPServer


class Weather(TypedDict):
    """What the tool gives."""

    city: str
    temperature: float
    conditions: str
    wind_kmh: int


def _get_weather(city: str) -> Weather:
    """Say how the weather is."""
    return {"city": city, "temperature": 21.5, "conditions": "sunny", "wind_kmh": 12}


def _serve() -> None:
    logging.disable(logging.ERROR)
    server = MCPServer("weather")
    server.add_tool(_get_weather, name="get_weather")
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error", ws="none", loop="uvloop")
    uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    _serve()
