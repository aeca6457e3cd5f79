"""The tool of workload W: small, quick and the same everywhere."""

from typing import Any

TOOL: dict[str, Any] = {
    "name": "get_weather",
    "description": "The weather of a city right now.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Name of the city, such as Lisbon"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


def get_weather(city: str) -> dict[str, Any]:
    """Return a small JSON object."""
    return {"city": city, "conditions": "light rain", "celsius": 10 + len(city) % 20, "wind_km_h": 3 * len(city)}
