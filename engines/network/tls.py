"""The files that TLS needs, read and checked, and the warning when nothing is verified (rule S10)."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import structlog

from engines.errors import ConfigurationInvalid
from engines.network.connection import ConnectionSettings
from engines.network.origins import Origin

_log = structlog.get_logger(__name__)
_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_PRIVATE_KEY = b"PRIVATE KEY-----"


@dataclass(frozen=True, slots=True)
class TLSFiles:
    """PEM texts: authorities to trust besides the system's, and the certificate with its key that the client shows."""

    authorities: bytes | None
    identity: bytes | None
    verifies: bool


def read_tls_files(settings: ConnectionSettings) -> TLSFiles:
    """Read what the settings name (blocking); ConfigurationInvalid names key and file."""
    authorities = identity = None
    if isinstance(settings.verify, str):
        authorities = _pem("verify", Path(settings.verify), _CERTIFICATE, "a certificate")
    if settings.client_certificate is not None:
        identity = _pem("client_certificate", settings.client_certificate, _CERTIFICATE, "a certificate")
        if settings.client_key is not None:
            identity += b"\n" + _pem("client_key", settings.client_key, _PRIVATE_KEY, "a private key")
        elif _PRIVATE_KEY not in identity:
            cause = f"{settings.client_certificate} holds no private key; add it, or name its file as client_key"
            raise ConfigurationInvalid(f"client_certificate: {cause}")
    return TLSFiles(authorities, identity, verifies=settings.verify is not False)


def warn_when_unverified(settings: ConnectionSettings, origin: Origin) -> None:
    """Say at every start that anybody between here and the server may read and answer."""
    if settings.verify is False and origin.scheme == "https":
        _log.warning("TLS certificates are not verified", host=origin.authority, setting="verify: false")


def ssl_context(settings: ConnectionSettings) -> ssl.SSLContext:
    """Make a client's context for connections of Python's own (blocking): at least TLS 1.2, the system's authorities.

    ConfigurationInvalid names the key whose file cannot be used.
    """
    files = read_tls_files(settings)
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not files.verifies:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    try:
        if files.authorities is not None:
            context.load_verify_locations(cadata=files.authorities.decode("ascii", "ignore"))
        if settings.client_certificate is not None:
            # The empty password keeps OpenSSL from asking the terminal for that of an encrypted key.
            context.load_cert_chain(settings.client_certificate, settings.client_key, password="")
    except (ssl.SSLError, ValueError) as error:
        raise unusable_files(str(error)) from None
    return context


def unusable_files(cause: str) -> ConfigurationInvalid:
    """The error for PEM files that can be read and not used."""
    return ConfigurationInvalid(f"verify, client_certificate, client_key: {cause}; give PEM files with no password")


def _pem(key: str, path: Path, marker: bytes, content: str) -> bytes:
    try:
        pem = path.read_bytes()
    except OSError as error:
        message = f"{key}: cannot read {path}: {error.strerror}; give the path of a PEM file"
        raise ConfigurationInvalid(message) from None
    if marker not in pem:
        raise ConfigurationInvalid(f"{key}: {path} holds no {content.removeprefix('a ')}; give the path of a PEM file")
    return pem
