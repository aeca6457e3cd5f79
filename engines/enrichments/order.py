"""In which order enrichments run: after whatever they need, however they are written down (rule D76)."""

from collections.abc import Sequence

from engines.enrichments.enrichment import Enrichment
from engines.errors import ConfigurationInvalid, Place
from engines.nearest import listed


def ordered(enrichments: Sequence[Enrichment], *, at: Place = ("enrichments",)) -> list[Enrichment]:
    """Return them sorted; ConfigurationInvalid for a need that nobody meets, a circle, two producers of one key."""
    producers: dict[str, int] = {}
    for position, enrichment in enumerate(enrichments):
        key = enrichment.artifact_key
        if key is not None and producers.setdefault(key, position) != position:
            message = f"the artifact {key!r} has two producers (the first is enrichments[{producers[key]}]); remove one"
            raise ConfigurationInvalid(message, at=(*at, position))
    for position, enrichment in enumerate(enrichments):
        for key in enrichment.depends_on:
            if key not in producers:
                message = f"it needs the artifact {key!r}, which none of them makes; add `- type: {key}`"
                raise ConfigurationInvalid(message, at=(*at, position))
    return [enrichments[position] for position in _sorted(enrichments, producers, at)]


def _sorted(enrichments: Sequence[Enrichment], producers: dict[str, int], at: Place) -> list[int]:
    before = {
        position: {producers[key] for key in each.depends_on} | _completers(enrichments, each)
        for position, each in enumerate(enrichments)
    }
    found: list[int] = []
    while len(found) < len(enrichments):
        ready = [position for position in before if position not in found and before[position] <= set(found)]
        if not ready:
            circle = [position for position in before if position not in found]
            keys = listed(str(enrichments[position].artifact_key) for position in circle)
            raise ConfigurationInvalid(f"enrichments need each other in a circle: {keys}", at=(*at, circle[0]))
        found += ready
    return found


def _completers(enrichments: Sequence[Enrichment], reader: Enrichment) -> set[int]:
    """Return those that add to the tools what this one reads of them."""
    if not reader.reads_outputs:
        return set()
    return {position for position, each in enumerate(enrichments) if each.artifact_key is None and each is not reader}
