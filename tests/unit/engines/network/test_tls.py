"""TLS to the servers of tools, over both HTTP stacks: verified by default, each refusal names host and cause (S10)."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog

from engines.errors import ConfigurationInvalid
from engines.network.connection import ConnectionSettings
from engines.network.failures import FailureKind, NetworkFailure
from engines.network.http_client import HttpClient
from engines.network.mcp_http import mcp_http_client
from tests.support.certificates import NOW, Authority, Certificate
from tests.support.raw_server import RawServer
from tests.support.tls_server import TLSServer, tls_server

Server = RawServer | TLSServer
Ask = Callable[..., Awaitable[int]]


def settings(server: Server, **keys: Any) -> ConnectionSettings:
    url = f"https://localhost:{server.port}/mcp"
    return ConnectionSettings.model_validate({"url": url, "timeout": 10, **keys})


async def ask_rest(server: Server, **keys: Any) -> int:
    async with HttpClient(settings(server, **keys)) as client:
        return (await client.request("GET", "/mcp")).status


async def ask_mcp(server: Server, **keys: Any) -> int:
    async with mcp_http_client(settings(server, **keys), timeout=10) as client:
        return (await client.get(f"https://localhost:{server.port}/mcp")).status_code


both = pytest.mark.parametrize("ask", [ask_rest, ask_mcp], ids=["rest", "mcp"])


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def refused(ask: Ask, server: Server, **keys: Any) -> NetworkFailure:
    with pytest.raises(NetworkFailure) as caught:
        await ask(server, **keys)
    assert f"localhost:{server.port}" in caught.value.message
    assert server.requests == []
    return caught.value


@both
async def test_d41_verify_decides_whom_a_connection_trusts(ask: Ask, authority: Authority) -> None:
    with tls_server(authority.server_context(authority.signed("localhost"))) as server:
        for everybodys in ({}, {"verify": True}):
            await refused(ask, server, **everybodys)
        assert await ask(server, verify=str(authority.file)) == 200
        assert await ask(server, verify=False) == 200


@both
async def test_sec_s10_an_authority_that_nobody_named_is_refused(ask: Ask, authority: Authority) -> None:
    with tls_server(authority.server_context(authority.signed("localhost"))) as server:
        told = await refused(ask, server)
    assert told.kind is FailureKind.tls
    assert "certificate" in told.message
    assert "verify: <CA file>" in told.message
    assert not told.may_pass


@both
@pytest.mark.parametrize("sort", ["expired", "wrong host", "self-signed"])
async def test_sec_s10_a_certificate_that_is_not_the_hosts_is_refused(
    ask: Ask, authority: Authority, sort: str
) -> None:
    made, cause = {
        "expired": (authority.signed("localhost", until=NOW - timedelta(days=1)), "xpired"),
        "wrong host": (authority.signed("elsewhere.example"), "localhost"),
        "self-signed": (Certificate.of("localhost"), "certificate"),
    }[sort]
    with tls_server(authority.server_context(made)) as server:
        told = await refused(ask, server, verify=str(authority.file))
    assert told.kind is FailureKind.tls
    assert cause in told.message


@both
@pytest.mark.parametrize("most", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
async def test_sec_s10_protocols_before_tls_1_2_are_refused(
    ask: Ask, authority: Authority, most: ssl.TLSVersion
) -> None:
    context = authority.server_context(authority.signed("localhost"), most=most)
    with tls_server(context) as server:
        for keys in ({"verify": str(authority.file)}, {"verify": False}):
            assert (await refused(ask, server, **keys)).kind is FailureKind.tls


@both
async def test_sec_s10_a_server_that_asks_for_a_certificate_gets_it_or_refuses(ask: Ask, authority: Authority) -> None:
    client = authority.signed("client")
    whole = client.write(authority.folder / "client.pem")
    (authority.folder / "cert.pem").write_bytes(client.certificate_pem)
    (authority.folder / "key.pem").write_bytes(client.key_pem)
    verify = str(authority.file)
    context = authority.server_context(authority.signed("localhost"), asks_for_client=True)
    with tls_server(context) as server:
        told = await refused(ask, server, verify=verify)
        assert told.kind is FailureKind.tls
        assert "client_certificate?" in told.message
        assert await ask(server, verify=verify, client_certificate=str(whole)) == 200
        pair = {
            "client_certificate": str(authority.folder / "cert.pem"),
            "client_key": str(authority.folder / "key.pem"),
        }
        assert await ask(server, verify=verify, **pair) == 200


@both
async def test_sec_s10_not_verifying_takes_an_explicit_key_and_warns_at_every_start(
    ask: Ask, authority: Authority
) -> None:
    with tls_server(authority.server_context(Certificate.of("elsewhere.example"))) as server:
        for _ in range(2):
            with structlog.testing.capture_logs() as events:
                assert await ask(server, verify=False) == 200
            assert [event["log_level"] for event in events] == ["warning"]
            assert events[0]["host"] == f"localhost:{server.port}"


async def test_sec_s8_a_client_certificate_is_bound_to_its_server(authority: Authority) -> None:
    """A client for another origin than that of `url` shows none (mcp's has no other)."""
    whole = authority.signed("client").write(authority.folder / "client.pem")
    context = authority.server_context(authority.signed("localhost"), asks_for_client=True)
    with tls_server(context) as server:
        own = settings(server, verify=str(authority.file), client_certificate=str(whole))
        other = own.model_copy(update={"url": "https://elsewhere.example"})
        async with HttpClient(other, own.origin, is_configured=True) as client:
            with pytest.raises(NetworkFailure):
                await client.request("GET", "/mcp")
        assert server.requests == []


@both
async def test_a_server_without_tls_is_told_as_such(ask: Ask) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as listening:
        server = RawServer(listening.sockets[0].getsockname()[1])
        assert (await refused(ask, server)).kind is FailureKind.tls


@both
@pytest.mark.parametrize(
    ("key", "text", "cause"),
    [
        ("verify", "hello", "holds no certificate"),
        ("verify", None, "cannot read"),
        ("verify", "-----BEGIN CERTIFICATE-----\nhello\n-----END CERTIFICATE-----\n", "give PEM files"),
        ("client_certificate", "hello", "holds no certificate"),
        ("client_certificate", None, "cannot read"),
        ("client_certificate", "-----BEGIN CERTIFICATE-----\n", "holds no private key"),
        ("client_key", "hello", "holds no private key"),
    ],
)
async def test_sec_s10_files_that_cannot_be_used_are_named_at_the_start(
    ask: Ask, authority: Authority, key: str, text: str | None, cause: str
) -> None:
    path = authority.folder / "given.pem"
    if text is not None:
        path.write_text(text)
    keys = {key: str(path)}
    if key == "client_key":
        keys["client_certificate"] = str(authority.signed("c").write(authority.folder / "client.pem"))
    with pytest.raises(ConfigurationInvalid, match=key) as caught:
        await ask(RawServer(port=1), **keys)
    assert cause in str(caught.value)
