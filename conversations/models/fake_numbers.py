"""Numbers within a schema's bounds, plausible for their names, and the user's own where they fit."""

import math
import re
from collections.abc import Sequence
from random import Random

from conversations.messages import JSONObject
from conversations.models.fake_values import number_range

_NUMBERS = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w])")
_SPAN = 100


def numbers_in(text: str) -> list[float]:
    """The numbers that a text names, in its order."""
    return [float(number) for number in _NUMBERS.findall(text)] if text else []


def fake_number(
    schema: JSONObject, name: str, chance: Random, *, whole: bool, said: Sequence[float] = ()
) -> int | float:
    """The first number `said` that the schema allows, else one that its name makes plausible."""
    low, high = _bounds(schema, whole=whole)
    step = schema.get("multipleOf")
    for value in () if step else said:
        if low <= value <= high and (not whole or value.is_integer()):
            return int(value) if whole else value
    usual_low, usual_high = number_range(name)
    if max(low, usual_low) <= min(high, usual_high):
        low, high = max(low, usual_low), min(high, usual_high)
    elif low == -math.inf:
        low = high - _SPAN
    elif high == math.inf:
        high = low + _SPAN
    if isinstance(step, int | float) and step > 0:
        return _multiple(low, high, step, chance, whole=whole)
    if whole:
        return chance.randint(math.ceil(low), max(math.ceil(low), math.floor(high)))
    value = round(chance.uniform(low, high), 2)
    return value if low <= value <= high else chance.uniform(low, high)


def _bounds(schema: JSONObject, *, whole: bool) -> tuple[float, float]:
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    nudge = 1 if whole else 1e-6
    if above is True:  # draft 4
        low += nudge
    elif isinstance(above, int | float) and above is not False:
        low = max(low, (math.floor(above) + 1) if whole else above + nudge)
    if below is True:
        high -= nudge
    elif isinstance(below, int | float) and below is not False:
        high = min(high, (math.ceil(below) - 1) if whole else below - nudge)
    return low, high


def _multiple(low: float, high: float, step: float, chance: Random, *, whole: bool) -> int | float:
    first, last = math.ceil(low / step), math.floor(high / step)
    if first > last:
        first = last = math.ceil(low / step)
    value = chance.randint(first, last) * step
    return int(value) if whole else round(value, 10)
