"""TLS to model servers: verified by default, each refusal names host and cause (rule S10)."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
import structlog
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from conversations.errors import ModelError, ModelUnavailable
from conversations.models.connections import ConnectionKind, release_client, take_client
from conversations.models.model import ModelRequest
from conversations.models.openai_compatible import OpenAICompatibleModel
from conversations.models.settings import ModelSettings
from tests.support.certificates import Authority
from tests.support.tls_server import tls_server
from tests.unit.conversations.models.conftest import ScriptedServer

NOW = datetime.now(UTC)
Issuer = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def certificate(name: str, issuer: Issuer | None = None, *, until: datetime = NOW + timedelta(days=2)) -> Issuer:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[0].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=3))
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer:
        names = [x509.DNSName(name)] if name != "127.0.0.1" else [x509.IPAddress(ip_address(name))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer[1] if issuer else key, hashes.SHA256()), key


def written(made: Issuer, path: Path) -> Path:
    certificate_pem = made[0].public_bytes(serialization.Encoding.PEM)
    key_pem = made[1].private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(certificate_pem + key_pem)
    return path


class Secure:
    """A TLS server whose certificate a test chooses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = certificate("test authority")
        self.ca_file = written(self.authority, folder / "ca.pem")
        self.port = 1

    @asynccontextmanager
    async def serve(self, made: Issuer, *, asks_for_client: bool = False) -> AsyncIterator[None]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(written(made, self.folder / "server.pem"))
        if asks_for_client:
            context.load_verify_locations(self.ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
        scripted = ScriptedServer()
        listening = await asyncio.start_server(scripted.serve, "127.0.0.1", 0, ssl=context)
        self.port = listening.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            listening.close()
            await scripted.close()

    async def ask(self, **settings: object) -> str:
        given = {"provider": "openai", "model": "m", "base_url": f"https://127.0.0.1:{self.port}/v1"} | settings
        model = OpenAICompatibleModel(ModelSettings.model_validate(given))
        await model.open()
        try:
            return str((await model.ask(ModelRequest([{"role": "user", "content": "Hi"}]))).message["content"])
        finally:
            await model.close()


@pytest.fixture
def secure(tmp_path: Path) -> Secure:
    return Secure(tmp_path)


async def test_sec_s10_a_certificate_of_the_given_ca_is_accepted(secure: Secure) -> None:
    async with secure.serve(certificate("127.0.0.1", secure.authority)):
        assert await secure.ask(ca_file=secure.ca_file) == "Hello."


async def test_sec_s10_an_unknown_issuer_is_refused_and_not_tried_again(secure: Secure) -> None:
    async with secure.serve(certificate("127.0.0.1", secure.authority)):
        with pytest.raises(
            ModelUnavailable, match=r"https://127\.0\.0\.1:\d+/v1: TLS failed.*UnknownIssuer.*ca_file"
        ) as caught:
            await secure.ask()
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("name", "until", "cause"),
    [
        ("elsewhere.example", NOW + timedelta(days=1), "not valid for name"),
        ("127.0.0.1", NOW - timedelta(days=1), "xpired"),
    ],
)
async def test_sec_s10_a_wrong_name_and_an_expired_certificate_are_refused(
    secure: Secure, name: str, until: datetime, cause: str
) -> None:
    async with secure.serve(certificate(name, secure.authority, until=until)):
        with pytest.raises(ModelUnavailable, match=cause):
            await secure.ask(ca_file=secure.ca_file)


async def test_sec_s10_a_certificate_that_signs_itself_is_refused(secure: Secure) -> None:
    async with secure.serve(certificate("127.0.0.1")):
        with pytest.raises(ModelUnavailable, match=r"https://127\.0\.0\.1:\d+/v1: TLS failed"):
            await secure.ask(ca_file=secure.ca_file)


@pytest.mark.parametrize("most", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
async def test_sec_s10_protocols_before_tls_1_2_are_refused(secure: Secure, most: ssl.TLSVersion) -> None:
    authority = Authority(secure.folder)
    with tls_server(authority.server_context(authority.signed("127.0.0.1"), most=most)) as server:
        secure.port = server.port
        with pytest.raises(ModelUnavailable, match=rf"127\.0\.0\.1:{server.port}/v1: TLS failed: .*ProtocolVersion"):
            await secure.ask(ca_file=authority.file)
    assert server.handshakes
    assert server.requests == []


async def test_sec_s10_not_verifying_takes_an_explicit_key_and_warns(secure: Secure) -> None:
    async with secure.serve(certificate("127.0.0.1", secure.authority)):
        with structlog.testing.capture_logs() as events:
            assert await secure.ask(verify_tls=False) == "Hello."
    assert [event["log_level"] for event in events] == ["warning"]


async def test_sec_s10_a_client_certificate_is_shown_to_servers_that_ask(secure: Secure) -> None:
    client = written(certificate("client", secure.authority), secure.folder / "client.pem")
    async with secure.serve(certificate("127.0.0.1", secure.authority), asks_for_client=True):
        with pytest.raises(ModelUnavailable):
            await secure.ask(ca_file=secure.ca_file)
        assert await secure.ask(ca_file=secure.ca_file, client_certificate_file=client) == "Hello."


async def test_models_opened_at_the_same_time_share_one_client(secure: Secure) -> None:
    kind = ConnectionKind.of(ModelSettings(provider="openai", model="m", ca_file=secure.ca_file))

    clients = await asyncio.gather(*(take_client(kind) for _ in range(5)))

    assert len(set(map(id, clients))) == 1
    for _ in clients:
        await release_client(kind)


@pytest.mark.parametrize("key", ["ca_file", "client_certificate_file"])
async def test_sec_s10_files_that_are_no_certificates_are_named(secure: Secure, key: str) -> None:
    (secure.folder / "text.pem").write_text("hello")
    for name in ("text.pem", "missing.pem"):
        with pytest.raises(ModelError, match=f"model.{key}: .*{name}") as caught:
            await secure.ask(**{key: secure.folder / name})
        assert caught.value.type == "model_configuration"
