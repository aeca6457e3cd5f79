"""Tools of tests: the weather of a city, made up of its name."""

from typing import Any


def get_weather(city: str) -> dict[str, Any]:
    return {"city": city, "celsius": sum(city.encode()) % 35, "sky": ("clear", "cloudy", "rain")[len(city) % 3]}
