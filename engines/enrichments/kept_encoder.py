"""An encoder whose vectors are kept in a file: a text is encoded once, whatever recipe holds it."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from engines.enrichments.cache import KeptEntries
from engines.enrichments.similarity import Vector, unit

_KIND = "embeddings"


class ModelEncoder(Protocol):
    """An encoder with a model: the same name means the same vectors."""

    @property
    def name(self) -> str:
        """Which model it is, and where it comes from."""

    async def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, of any length."""


class KeptEncoder:
    """Asks the model only for texts that are new; `force` asks for all, and keeps the new vectors."""

    def __init__(self, encoder: ModelEncoder, folder: Path | None, *, force: bool) -> None:
        self._encoder = encoder
        self._kept = KeptEntries(folder, _KIND, _digest(encoder.name))
        self._force = force

    async def encode(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector of length one per text."""
        known = {} if self._force else self._kept.load()
        digests = {text: _digest(text) for text in dict.fromkeys(texts)}
        new = [text for text, digest in digests.items() if digest not in known]
        if new:
            made = dict(zip((digests[text] for text in new), await self._encoder.encode(new), strict=True))
            self._kept.add(made)
            known = {**known, **made}
        return [unit([float(number) for number in known[digests[text]]]) for text in texts]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
