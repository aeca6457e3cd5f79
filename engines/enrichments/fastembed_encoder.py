"""The `fastembed` encoder: a model in this process, named in the recipe, loaded when the first text is encoded."""

import asyncio
import importlib
from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from engines.checked import checked
from engines.errors import ConfigurationInvalid, Place
from engines.plain import JSONObject


class FastembedSettings(BaseModel):
    """`model` as fastembed knows it; `folder` is where its files lie or are put, `threads` what it may use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["fastembed"]
    model: str = Field(min_length=1)
    folder: str | None = None
    local_files_only: bool = False
    threads: int | None = Field(default=None, ge=1)


class FastembedEncoder:
    """Encodes in a thread of its own; nothing is imported or fetched before the first text."""

    def __init__(self, settings: FastembedSettings, at: Place) -> None:
        self._settings = settings
        self._at = at

    @classmethod
    def of(cls, settings: JSONObject, at: Place) -> Self:
        """Check the settings."""
        return cls(checked(FastembedSettings, settings, at=at), at)

    @property
    def name(self) -> str:
        """The model's name."""
        return f"fastembed {self._settings.model}"

    async def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text."""
        return await asyncio.to_thread(self._encoded, list(texts))

    def _encoded(self, texts: list[str]) -> list[list[float]]:
        try:
            library: Any = importlib.import_module("fastembed")  # Heavy, and behind an extra.
        except ImportError as error:
            message = "encoding with a model needs fastembed; install parley[embeddings], or use `encoder: lexical`"
            raise ConfigurationInvalid(message, at=self._at) from error
        settings = self._settings
        try:
            model = library.TextEmbedding(
                model_name=settings.model,
                cache_dir=settings.folder,
                threads=settings.threads,
                local_files_only=settings.local_files_only,
            )
            return [[float(number) for number in vector] for vector in model.embed(texts)]
        except Exception as error:  # Foreign code: an unknown model, no network, a broken file.
            message = f"the model {settings.model!r} cannot be used: {type(error).__name__}: {error}"
            raise ConfigurationInvalid(message, at=self._at) from error
