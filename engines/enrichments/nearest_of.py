"""The strongest few of many, in each namespace, so that a large namespace does not crowd out a small one."""

from collections.abc import Mapping


def nearest_of(scores: Mapping[str, float], namespace_of: Mapping[str, str], most: int) -> list[tuple[str, float]]:
    """Return at most so many names of each namespace with their scores, the strongest first; names break ties."""
    counted: dict[str, int] = {}
    kept = []
    for name, score in sorted(scores.items(), key=lambda item: (-item[1], item[0])):
        namespace = namespace_of[name]
        counted[namespace] = counted.get(namespace, 0) + 1
        if counted[namespace] <= most:
            kept.append((name, score))
    return kept
