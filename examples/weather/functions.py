"""The tools of station_tools.yaml, as functions: the same question always gets the same weather."""

import random
from typing import Any

from engines.local.context import Context

_CONDITIONS = ("clear", "a few clouds", "overcast", "light rain", "showers", "fog", "thunder", "snow")
_SNOW_MELTS_AT_CELSIUS = 3.0
_ABSOLUTE_ZERO_CELSIUS = -273.15


def current_weather(city: str, units: str) -> dict[str, Any]:
    """Measure at the city's station."""
    weather = _weather(city, day=0)
    celsius = weather.pop("celsius")
    if units == "imperial":
        return {"city": city, **weather, "temperature": round(celsius * 9 / 5 + 32, 1), "unit": "°F"}
    return {"city": city, **weather, "temperature": celsius, "unit": "°C"}


def forecast(city: str, days: int) -> dict[str, Any]:
    """Look ahead, day by day."""
    return {"city": city, "unit": "°C", "days": [{"day": day, **_weather(city, day)} for day in range(1, days + 1)]}


def convert_temperature(value: float, from_unit: str, to_unit: str) -> dict[str, Any]:
    """Convert between three scales; the ValueError below becomes an error that the model sees."""
    celsius = {"celsius": value, "fahrenheit": (value - 32) * 5 / 9, "kelvin": value + _ABSOLUTE_ZERO_CELSIUS}[
        from_unit
    ]
    if celsius < _ABSOLUTE_ZERO_CELSIUS:
        raise ValueError(f"{value} {from_unit} is below absolute zero ({_ABSOLUTE_ZERO_CELSIUS} celsius)")
    converted = {"celsius": celsius, "fahrenheit": celsius * 9 / 5 + 32, "kelvin": celsius - _ABSOLUTE_ZERO_CELSIUS}
    return {"value": round(converted[to_unit], 2), "unit": to_unit}


def note_place(city: str, context: Context, remark: str = "") -> dict[str, Any]:
    """Write into the notebook. `context.namespace` belongs to this conversation and survives a crash of the worker."""
    notebook = context.namespace.setdefault("notebook", [])
    notebook.append({"city": city, "remark": remark})
    return {"noted": city, "places": len(notebook)}


def noted_places(context: Context) -> dict[str, Any]:
    """Read the notebook."""
    return {"places": list(context.namespace.get("notebook", []))}


def _weather(city: str, day: int) -> dict[str, Any]:
    """Invent one day's weather, the same on every machine."""
    chance = random.Random(f"{city.strip().casefold()}/{day}")
    celsius = round(chance.gauss(15, 8), 1)
    possible = _CONDITIONS if celsius < _SNOW_MELTS_AT_CELSIUS else _CONDITIONS[:-1]
    return {
        "conditions": chance.choice(possible),
        "celsius": celsius,
        "wind_km_h": round(chance.expovariate(1 / 18)),
        "humidity_percent": chance.randint(25, 100),
    }
