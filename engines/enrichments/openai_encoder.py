"""The `openai` encoder: an /embeddings endpoint, OpenAI's or that of any server that speaks like it."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field

from engines.checked import checked
from engines.errors import ConfigurationInvalid, Place
from engines.network.connection import ConnectionSettings
from engines.network.failures import NetworkFailure
from engines.plain import JSONObject

if TYPE_CHECKING:
    from engines.network.http_client import HttpClient

_SHOWN_CHARS = 200
_OK = 200


class OpenAIEncoderSettings(ConnectionSettings):
    """`url` is the API's base (`…/v1`); `batch` texts are sent at once."""

    type: Literal["openai"]
    url: str = "https://api.openai.com/v1"
    model: str = Field(min_length=1)
    batch: int = Field(default=128, ge=1, le=2048)
    max_response_bytes: int = Field(default=64 << 20, ge=1, le=1 << 30)


class OpenAIEncoder:
    """Asks the server in batches, one after the other."""

    def __init__(self, settings: OpenAIEncoderSettings, at: Place) -> None:
        self._settings = settings
        self._at = at

    @classmethod
    def of(cls, settings: JSONObject, at: Place) -> Self:
        """Check the settings."""
        return cls(checked(OpenAIEncoderSettings, settings, at=at), at)

    @property
    def name(self) -> str:
        """The server and its model."""
        return f"openai {self._settings.url} {self._settings.model}"

    async def encode(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text; ConfigurationInvalid when the server gives none."""
        from engines.network.http_client import HttpClient  # noqa: PLC0415 (heavy, and few recipes have it)

        vectors: list[list[float]] = []
        try:
            async with HttpClient(self._settings) as client:
                for start in range(0, len(texts), self._settings.batch):
                    vectors += await self._batch(client, list(texts[start : start + self._settings.batch]))
        except NetworkFailure as failure:
            raise ConfigurationInvalid(f"no embeddings: {failure.message}", at=self._at) from failure
        return vectors

    async def _batch(self, client: "HttpClient", texts: list[str]) -> list[list[float]]:
        answer = await client.request(
            "POST",
            f"{self._settings.url.rstrip('/')}/embeddings",
            headers=[("content-type", "application/json")],
            content=json.dumps({"model": self._settings.model, "input": texts}).encode(),
        )
        if answer.status != _OK:
            shown = answer.body[: 4 * _SHOWN_CHARS].decode("utf-8", "replace")[:_SHOWN_CHARS]
            raise ConfigurationInvalid(f"no embeddings: {client.origin}: HTTP {answer.status}: {shown}", at=self._at)
        try:
            return _vectors(json.loads(answer.body), len(texts))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            message = f"no embeddings: {client.origin}: the answer is none of /embeddings ({type(error).__name__})"
            raise ConfigurationInvalid(message, at=self._at) from error


def _vectors(answer: Any, number: int) -> list[list[float]]:
    """Return the vectors in the order of the texts, whatever the order of the answer."""
    found: list[list[float]] = [[] for _ in range(number)]
    for entry in answer["data"]:
        found[entry["index"]] = [float(each) for each in entry["embedding"]]
    if len({len(vector) for vector in found}) != 1 or not all(found):
        raise ValueError("a vector is missing or of another length")
    return found
