"""How alike texts are, by their vectors: the cosine, for dense vectors of a model and sparse ones of words."""

import math
from collections.abc import Sequence
from operator import mul

Vector = dict[str, float] | list[float]
"""Weights by word, or a model's numbers."""

_DIGITS = 4


def unit(vector: Vector) -> Vector:
    """Return the vector with length one; a vector of nothing stays as it is."""
    if isinstance(vector, dict):
        length = math.sqrt(sum(weight * weight for weight in vector.values()))
        return {word: weight / length for word, weight in vector.items()} if length else vector
    length = math.sqrt(sum(map(mul, vector, vector)))
    return [number / length for number in vector] if length else vector


def similarities(rows: Sequence[Vector], columns: Sequence[Vector]) -> list[dict[int, float]]:
    """Return for each row the columns that are at all like it, by position, with the cosine in (0, 1].

    The vectors have length one. Sparse ones meet through their words, so that unlike texts cost nothing.
    """
    places: dict[str, list[tuple[int, float]]] = {}
    for position, column in enumerate(columns):
        if isinstance(column, dict):
            for word, weight in column.items():
                places.setdefault(word, []).append((position, weight))
    return [_sparse(row, places) if isinstance(row, dict) else _dense(row, columns) for row in rows]


def _sparse(row: dict[str, float], places: dict[str, list[tuple[int, float]]]) -> dict[int, float]:
    found: dict[int, float] = {}
    for word, weight in row.items():
        for position, other in places.get(word, ()):
            found[position] = found.get(position, 0.0) + weight * other
    return _positive(found)


def _dense(row: list[float], columns: Sequence[Vector]) -> dict[int, float]:
    return _positive({place: sum(map(mul, row, each)) for place, each in enumerate(columns) if isinstance(each, list)})


def _positive(found: dict[int, float]) -> dict[int, float]:
    """Round, so that the same input gives the same artifact whatever the order of the sums."""
    rounded = {position: min(1.0, round(score, _DIGITS)) for position, score in found.items()}
    return {position: score for position, score in rounded.items() if score > 0}
