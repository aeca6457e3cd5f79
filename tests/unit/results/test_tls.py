"""TLS to the object store: verified by default, each refusal names host and cause (rule S10)."""

import ssl
from datetime import timedelta
from pathlib import Path

import pytest

from results import cloud_store
from results.cloud_store import CloudStore
from results.errors import ResultsError, StoreRefused
from tests.support.certificates import NOW, Authority, Certificate
from tests.support.tls_server import TLSServer, tls_server

_STORED = b'HTTP/1.1 200 OK\r\netag: "1"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n'


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    monkeypatch.setattr(cloud_store, "REQUEST_RETRIES", 0)
    for name, value in (("ACCESS_KEY_ID", "key"), ("SECRET_ACCESS_KEY", "canary"), ("REGION", "us-east-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


def store(server: TLSServer, monkeypatch: pytest.MonkeyPatch) -> CloudStore:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"https://localhost:{server.port}")
    return CloudStore("s3://bucket/folder")


def test_sec_s10_a_certificate_of_an_authority_in_the_environment_is_accepted(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tls_server(authority.server_context(authority.signed("localhost")), _STORED) as server:
        store(server, monkeypatch).put("key", b"data")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("sort", "cause"),
    [
        ("unknown authority", "UnknownIssuer"),
        ("self-signed", "UnknownIssuer"),
        ("wrong host", "NotValidForName"),
        ("expired", "Expired"),
        ("TLS 1.0", "ProtocolVersion"),
        ("TLS 1.1", "ProtocolVersion"),
        ("asks for a client certificate", "CertificateRequired"),
    ],
)
def test_sec_s10_what_cannot_be_trusted_is_refused(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, sort: str, cause: str
) -> None:
    signed = authority.signed("localhost")
    context = {
        "unknown authority": lambda: authority.server_context(signed),
        "self-signed": lambda: authority.server_context(Certificate.of("localhost")),
        "wrong host": lambda: authority.server_context(authority.signed("elsewhere.example")),
        "expired": lambda: authority.server_context(authority.signed("localhost", until=NOW - timedelta(days=1))),
        "TLS 1.0": lambda: authority.server_context(signed, most=ssl.TLSVersion.TLSv1),
        "TLS 1.1": lambda: authority.server_context(signed, most=ssl.TLSVersion.TLSv1_1),
        "asks for a client certificate": lambda: authority.server_context(signed, asks_for_client=True),
    }[sort]()
    if sort == "unknown authority":
        monkeypatch.delenv("SSL_CERT_FILE")
    with tls_server(context, _STORED) as server, pytest.raises(ResultsError) as caught:
        store(server, monkeypatch).put("key", b"data")

    assert isinstance(caught.value, StoreRefused)
    assert f"TLS failed ({cause}) from localhost:{server.port}" in str(caught.value)
    assert "SSL_CERT_FILE" in str(caught.value)
    assert "canary" not in str(caught.value)
    assert server.requests == []
