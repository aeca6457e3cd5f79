"""Certificates made by a test: an authority, and what it signs (or somebody else does)."""

import ssl
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NOW = datetime.now(UTC)


@dataclass(frozen=True)
class Certificate:
    """A certificate with its key; `issuer` None signs itself."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def of(
        cls,
        *names: str,
        issuer: "Certificate | None" = None,
        until: datetime = NOW + timedelta(days=2),
        is_authority: bool = False,
    ) -> "Certificate":
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        authority_key = issuer.key if issuer else key
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer.certificate.subject if issuer else subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - timedelta(days=3))
            .not_valid_after(until)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
            )
        )
        if is_authority:
            usage = dict.fromkeys(_USAGES, False) | {"key_cert_sign": True, "digital_signature": True}
            builder = builder.add_extension(x509.KeyUsage(**usage), critical=True)
        else:
            builder = builder.add_extension(x509.SubjectAlternativeName([_name(name) for name in names]), False)
        return cls(builder.sign(authority_key, hashes.SHA256()), key)

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def write(self, path: Path) -> Path:
        """Write certificate and key into one file."""
        path.write_bytes(self.certificate_pem + self.key_pem)
        return path


class Authority:
    """An authority of one test, with its file and server contexts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own = Certificate.of("test authority", is_authority=True)
        self.file = folder / "authority.pem"
        self.file.write_bytes(self.own.certificate_pem)

    def signed(self, *names: str, until: datetime = NOW + timedelta(days=2)) -> Certificate:
        return Certificate.of(*names, issuer=self.own, until=until)

    def server_context(
        self, certificate: Certificate, *, asks_for_client: bool = False, most: ssl.TLSVersion | None = None
    ) -> ssl.SSLContext:
        """What a server needs; `most` is the newest protocol it speaks."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.write(self.folder / "server.pem"))
        if asks_for_client:
            context.load_verify_locations(self.file)
            context.verify_mode = ssl.CERT_REQUIRED
        if most is not None:
            context.set_ciphers("ALL:@SECLEVEL=0")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of old protocols, which are the point here
                context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
                context.maximum_version = most
        return context


_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


def _name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
