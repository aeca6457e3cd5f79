"""Places in a document: the keys and indices that lead to a value."""

from typing import Any

Place = tuple[str | int, ...]


def written(place: Place) -> str:
    """A place as people write it: `tools.registry[2].engine`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return text.removeprefix(".")


def followed(data: Any, place: Place) -> tuple[int, Any]:
    """How many steps of the place lead through the data, and the value where they end."""
    for depth, step in enumerate(place):
        known = dict(enumerate(data)) if isinstance(data, list) else data
        if not isinstance(known, dict) or step not in known:
            return depth, data
        data = known[step]
    return len(place), data
