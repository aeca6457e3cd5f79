"""One document over HTTP for a loader, inside and outside of a running loop."""

import asyncio
from typing import Any

import pytest

from engines.network.connection import ConnectionSettings
from engines.network.documents import fetch_document
from engines.network.failures import AddressRefused, NetworkFailure
from tests.support.raw_server import answer, raw_server


def fetch(document: str, **keys: Any) -> Any:
    return asyncio.to_thread(fetch_document, document, ConnectionSettings.model_validate(keys))


async def test_d46_a_document_comes_with_its_media_type() -> None:
    async with raw_server(answer(b"openapi: 3.1.0", "Content-Type: Application/YAML; charset=utf-8")) as server:
        assert await fetch(f"{server.url}/openapi?format=yaml") == (b"openapi: 3.1.0", "application/yaml")
    assert server.requests[0].target == "/openapi?format=yaml"


async def test_a_document_may_be_fetched_while_a_loop_runs() -> None:
    """It blocks this thread, so its server needs another one."""
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        assert fetch_document(f"http://127.0.0.1:{server.server_port}/", ConnectionSettings())[0] == b"{}"
        thread.join()


async def test_sec_s8_credentials_go_to_the_origin_of_the_url_alone() -> None:
    async with raw_server() as own, raw_server() as other:
        await fetch(f"{own.url}/a", url=f"{own.url}/v1", bearer_token="tok")
        await fetch(f"{other.url}/a", url=f"{own.url}/v1", bearer_token="tok")
    assert own.requests[0].headers["authorization"] == ["Bearer tok"]
    assert "authorization" not in other.requests[0].headers


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (answer(status="404 Not Found"), "HTTP 404 instead of the document"),
        (answer(b"", "location: https://x.example/y?token=secret", status="302 Found"), "https://x.example/y"),
        (answer(b"", "location: /moved?token=secret", status="301 Moved"), "/moved"),
        (answer(b"", "location: gopher://secret", status="301 Moved"), "nowhere that can be read"),
        (answer(b"x" * 2_000), "larger than 1,000 bytes"),
    ],
)
async def test_d46_what_is_no_document_is_told_with_its_cause(said: bytes, cause: str) -> None:
    async with raw_server(said) as server:
        with pytest.raises(NetworkFailure) as caught:
            await fetch(server.url, max_response_bytes=1_000)
    assert cause in caught.value.message
    assert f"127.0.0.1:{server.port}" in caught.value.message
    assert "secret" not in caught.value.message


async def test_sec_s7_a_document_at_a_private_address_takes_the_recipes_word() -> None:
    with pytest.raises(AddressRefused):
        await fetch("http://0x7f.1:1/openapi.json")
