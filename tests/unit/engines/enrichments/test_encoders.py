"""From texts to vectors."""

import subprocess
import sys
import types
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engines.enrichments.dataflow import DataflowSettings
from engines.enrichments.encoders import Encoder, EncodingSettings, build_encoder
from engines.errors import ConfigurationInvalid
from tests.support.http_backend import HttpBackend, Received
from tests.support.stand_in_service import service

AT = ("enrichments", 2)


def encoder_of(encoder: Any, cache: Path | None = None, **settings: Any) -> Encoder:
    written = EncodingSettings.model_validate({"type": "embeddings", "encoder": encoder, **settings})
    return build_encoder(written, at=AT, cache_folder=cache)


def lengths(asked: Received) -> tuple[int, Any]:
    """Answer each text by a vector of its length, the last text first."""
    entries = [{"index": place, "embedding": [len(text), 0, 0]} for place, text in enumerate(asked.json["input"])]
    return 200, {"data": entries[::-1]}


@pytest.fixture
async def server() -> AsyncIterator[HttpBackend]:
    async with service(lengths) as running:
        yield running


def openai(server: HttpBackend, **settings: Any) -> dict[str, Any]:
    return {"type": "openai", "url": f"{server.url}/v1", "model": "m", **settings}


async def test_d77_a_server_is_asked_in_batches_and_vectors_come_in_the_order_of_the_texts(server: HttpBackend) -> None:
    encoder = encoder_of(openai(server, batch=2, bearer_token="sesame"))
    assert await encoder.encode(["a", "bb", "ccc"]) == [[1.0, 0.0, 0.0]] * 3
    assert [(asked.path, asked.json) for asked in server.received] == [
        ("/v1/embeddings", {"model": "m", "input": ["a", "bb"]}),
        ("/v1/embeddings", {"model": "m", "input": ["ccc"]}),
    ]
    assert server.received[0].header("authorization") == "Bearer sesame"


async def test_d79_a_text_is_encoded_once_whatever_recipe_holds_it(server: HttpBackend, tmp_path: Path) -> None:
    await encoder_of(openai(server), tmp_path).encode(["a", "b", "a"])
    await encoder_of(openai(server), tmp_path).encode(["b", "c"])
    assert [asked.json["input"] for asked in server.received] == [["a", "b"], ["c"]]
    await encoder_of(openai(server), tmp_path, force=True).encode(["a"])
    await encoder_of(openai(server, model="another"), tmp_path).encode(["b"])
    assert [asked.json["input"] for asked in server.received[2:]] == [["a"], ["b"]]


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (401, {"error": "who are you"}, 'HTTP 401: {"error": "who are you"}'),
        (200, {"data": []}, r"the answer is none of /embeddings"),
        (200, {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]}, "none of /embeddings"),
        (200, {"data": [{"index": 7, "embedding": [1]}]}, "none of /embeddings"),
        (200, "<html>", "none of /embeddings"),
        (200, [], "none of /embeddings"),
    ],
)
async def test_a_server_that_gives_no_vectors_is_an_error_at_its_place(status: int, body: Any, cause: str) -> None:
    refused = pytest.raises(ConfigurationInvalid, match=rf"tools\.enrichments\[2\]\.encoder: no embeddings: .*{cause}")
    async with service(lambda _asked: (status, body)) as server:
        with refused:
            await encoder_of(openai(server, bearer_token="sesame")).encode(["a", "b"])


async def test_a_server_that_is_not_there_is_an_error_at_its_place() -> None:
    async with service(lengths) as gone:
        pass
    with pytest.raises(ConfigurationInvalid, match=r"tools\.enrichments\[2\]\.encoder: no embeddings: 127\.0\.0\.1"):
        await encoder_of(openai(gone)).encode(["a"])


class StandInModel:
    """What fastembed's class looks like from here."""

    made: list[dict[str, Any]]

    def __init__(self, **settings: Any) -> None:
        if settings["model_name"] == "unknown":
            message = "Model unknown is not supported"
            raise ValueError(message)
        self.made.append(settings)

    def embed(self, texts: Iterable[str]) -> Iterator[list[float]]:
        return ([float(len(text)), 1.0] for text in texts)


@pytest.fixture
def fastembed(monkeypatch: pytest.MonkeyPatch) -> type[StandInModel]:
    module = types.ModuleType("fastembed")
    StandInModel.made = []
    module.TextEmbedding = StandInModel  # type: ignore[attr-defined]  # the library is behind an extra
    monkeypatch.setitem(sys.modules, "fastembed", module)
    return StandInModel


async def test_d77_a_model_of_this_process_is_loaded_when_the_first_text_is_encoded(
    fastembed: type[StandInModel],
) -> None:
    encoder = encoder_of({"type": "fastembed", "model": "small", "folder": "/models", "local_files_only": True})
    assert fastembed.made == []
    (vector,) = await encoder.encode(["abc"])
    assert vector == pytest.approx([3 / 10**0.5, 1 / 10**0.5])
    assert fastembed.made == [
        {"model_name": "small", "cache_dir": "/models", "threads": None, "local_files_only": True}
    ]


async def test_model_is_short_for_a_model_of_this_process(fastembed: type[StandInModel]) -> None:
    settings = DataflowSettings.model_validate({"type": "dataflow", "model": "small"})
    await build_encoder(settings, at=AT, cache_folder=None).encode(["abc"])
    assert fastembed.made[0]["model_name"] == "small"


async def test_a_model_that_cannot_be_used_is_an_error_at_its_place(fastembed: type[StandInModel]) -> None:
    message = r"tools\.enrichments\[2\]\.encoder: the model 'unknown' cannot be used: ValueError: Model unknown"
    with pytest.raises(ConfigurationInvalid, match=message):
        await encoder_of({"type": "fastembed", "model": "unknown"}).encode(["a"])


async def test_without_the_extra_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(ConfigurationInvalid, match=r"install parley\[embeddings\], or use `encoder: lexical`"):
        await encoder_of({"type": "fastembed", "model": "small"}).encode(["a"])


def test_no_model_library_is_imported_before_it_is_needed() -> None:
    code = "import sys, engines.enrichments.kinds; print({'fastembed', 'numpy', 'onnxruntime'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder": "lexicall"}, r"\.encoder: no encoder 'lexicall'; did you mean 'lexical'\?"),
        ({"encoder": {"model": "m"}}, r"\.encoder: the type is missing; known: fastembed, lexical, openai"),
        ({"encoder": {"type": "lexical", "model": "m"}}, r"\.encoder\.model: unknown key 'model'"),
        ({"encoder": {"type": "openai"}}, r"\.encoder\.model: this key is needed"),
        ({"encoder": {"type": "openai", "model": "m", "url": "ftp://x"}}, r"\.encoder\.url: "),
        ({"encoder": "lexical", "model": "m"}, r"\.model: `model` and `encoder` both say how to encode; remove one"),
    ],
)
def test_wrong_settings_are_an_error_at_their_place(settings: dict[str, Any], message: str) -> None:
    written = EncodingSettings.model_validate({"type": "embeddings", **settings})
    with pytest.raises(ConfigurationInvalid, match=r"tools\.enrichments\[2\]" + message):
        build_encoder(written, at=AT, cache_folder=None)
