"""How the places of a draw are shared out among namespaces (rule D83): pure, and the chance is an argument."""

import math
import random
from collections.abc import Mapping
from typing import Literal

Strategy = Literal["proportional", "uniform"]

_ROUNDING = 1e-9


def shares(sizes: Mapping[str, int], weights: Mapping[str, float] | None, strategy: Strategy) -> dict[str, float]:
    """Return each namespace's share of a draw; they sum to one.

    Namespaces with a weight have it; those without one share what is left of 1 by the strategy (nothing, when the
    weights sum to 1 or more). Without any weights the strategy says it all.
    """
    given = {name: weight for name, weight in (weights or {}).items() if name in sizes}
    others = {name: size if strategy == "proportional" else 1 for name, size in sizes.items() if name not in given}
    left = max(0.0, 1.0 - sum(given.values())) if given else 1.0
    together = sum(others.values())
    filled = {name: left * part / together for name, part in others.items()} if together else {}
    found = {name: given.get(name, filled.get(name, 0.0)) for name in sizes}
    total = sum(found.values())
    return {name: share / total for name, share in found.items()} if total else dict.fromkeys(sizes, 0.0)


def places(k: int, share_of: Mapping[str, float], sizes: Mapping[str, int], chance: random.Random) -> dict[str, int]:
    """Return how many of `k` places each namespace gets: its quota rounded down or up, never more than it has tools.

    What a namespace has no tools for goes to the others by their shares. The sum is `k`, or less when the namespaces
    with a share have fewer tools altogether.
    """
    taken = dict.fromkeys(sizes, 0)
    left = k
    while left:
        open_shares = {name: share for name, share in share_of.items() if share > 0 and taken[name] < sizes[name]}
        if not open_shares:
            break
        for name, number in _rounded(left, open_shares, chance).items():
            fitting = min(number, sizes[name] - taken[name])
            taken[name] += fitting
            left -= fitting
    return taken


def _rounded(k: int, share_of: Mapping[str, float], chance: random.Random) -> dict[str, int]:
    """Share out `k` places: whole quotas first, the rest by chance, each namespace by the fraction of its quota.

    Were the rest given to the largest fractions, a namespace smaller than the others would never get a place. One
    throw decides for all, so that each namespace gets its quota rounded down or up, and the sum is right.
    """
    total = sum(share_of.values())
    quotas = {name: k * share / total for name, share in share_of.items()}
    rounded = {name: math.floor(quota + _ROUNDING) for name, quota in quotas.items()}
    names = list(quotas)
    chance.shuffle(names)  # Neighbours on the line of fractions would exclude each other.
    position, mark = 0.0, chance.random()
    for name in names:
        position += max(0.0, quotas[name] - rounded[name])
        if position > mark + _ROUNDING:
            rounded[name] += 1
            mark += 1.0
    missing = k - sum(rounded.values())
    for name in names[: max(0, missing)]:  # A fraction lost to rounding.
        rounded[name] += 1
    return rounded
