"""Encoders turn texts into vectors: by their words, by a server's model, or by a model in this process."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from engines.checked import checked
from engines.enrichments.enrichment import EnrichmentSettings
from engines.enrichments.fastembed_encoder import FastembedEncoder
from engines.enrichments.kept_encoder import KeptEncoder
from engines.enrichments.openai_encoder import OpenAIEncoder
from engines.enrichments.similarity import Vector, unit
from engines.errors import ConfigurationInvalid, Place
from engines.nearest import hint
from engines.plain import JSONObject
from engines.words import words


class Encoder(Protocol):
    """Turns texts into vectors of length one; texts that mean the same lie close together."""

    async def encode(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector per text; ConfigurationInvalid says what keeps the encoder from it."""


class LexicalSettings(BaseModel):
    """Nothing to set: it counts words."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["lexical"]


class LexicalEncoder:
    """Weights words by how rare they are among the texts; needs no model, no network and no memory of earlier texts."""

    async def encode(self, texts: Sequence[str]) -> list[Vector]:
        """Return a sparse vector per text."""
        counts = [Counter(words(text)) for text in texts]
        spread = Counter(word for count in counts for word in count)
        rarity = {word: math.log(1 + len(texts) / number) for word, number in spread.items()}
        return [unit({word: (1 + math.log(times)) * rarity[word] for word, times in count.items()}) for count in counts]


class EncodingSettings(EnrichmentSettings):
    """The keys of enrichments that compare texts; `model: NAME` is short for a model of fastembed."""

    encoder: str | JSONObject = "lexical"
    model: str | None = None

    def encoder_settings(self, at: Place) -> JSONObject:
        """Return the encoder's own settings."""
        if self.model is not None:
            if "encoder" in self.model_fields_set:
                raise ConfigurationInvalid(
                    "`model` and `encoder` both say how to encode; remove one", at=(*at, "model")
                )
            return {"type": "fastembed", "model": self.model}
        return {"type": self.encoder} if isinstance(self.encoder, str) else self.encoder


def build_encoder(settings: EncodingSettings, *, at: Place, cache_folder: Path | None) -> Encoder:
    """Return the encoder of an enrichment at this place; vectors of a model are kept for the next time."""
    own = settings.encoder_settings(at)
    place = (*at, "model" if settings.model is not None else "encoder")
    kind = own.get("type")
    if kind not in ENCODER_KINDS:
        cause = "the type is missing" if kind is None else f"no encoder {kind!r}"
        raise ConfigurationInvalid(f"{cause}; {hint(str(kind), ENCODER_KINDS)}", at=place)
    return ENCODER_KINDS[str(kind)](own, place, cache_folder, settings.force)


Build = Callable[[JSONObject, Place, Path | None, bool], Encoder]


def _lexical(settings: JSONObject, at: Place, _folder: Path | None, _force: bool) -> Encoder:  # noqa: FBT001
    checked(LexicalSettings, settings, at=at)
    return LexicalEncoder()


def _of_model(make: Callable[[JSONObject, Place], Any]) -> Build:
    """Keep the vectors of an encoder whose texts are dear, by the encoder's name."""

    def build(settings: JSONObject, at: Place, folder: Path | None, force: bool) -> Encoder:  # noqa: FBT001
        return KeptEncoder(make(settings, at), folder, force=force)

    return build


ENCODER_KINDS: Mapping[str, Build] = {
    "lexical": _lexical,
    "openai": _of_model(OpenAIEncoder.of),
    "fastembed": _of_model(FastembedEncoder.of),
}
