"""The hint at the end of a "no such name" message: the name probably meant, or those there are."""

import difflib
from collections.abc import Iterable

_NAMES_SHOWN = 20


def hint(name: str, known: Iterable[str]) -> str:
    """Return `did you mean 'x'?` when a known name is near, else the known names (at most 20)."""
    names = sorted(set(known))
    if not names:
        return "there are none"
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known: {listed(names)}"


def listed(names: Iterable[str]) -> str:
    """Return the names, comma separated, at most 20 of them."""
    every = list(names)
    more = len(every) - _NAMES_SHOWN
    return ", ".join(every[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
