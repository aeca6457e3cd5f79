"""One HTTP client per process, event loop and kind of connection, shared by all models and given back with the last."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from weakref import WeakKeyDictionary

import structlog
from pyreqwest.client import Client, ClientBuilder

from conversations.errors import ModelError
from conversations.models.settings import ModelSettings

_log = structlog.get_logger(__name__)
# Servers close idle sockets after 5 s to 75 s, and a dead one taken from the pool costs a retry.
_IDLE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class ConnectionKind:
    """What two models must have in common to share connections."""

    connect_timeout_seconds: float
    ca_file: Path | None
    client_certificate_file: Path | None
    verify_tls: bool
    environment_proxy: bool

    @classmethod
    def of(cls, settings: ModelSettings) -> "ConnectionKind":
        """The kind that these settings ask for."""
        return cls(
            connect_timeout_seconds=settings.connect_timeout_seconds,
            ca_file=settings.ca_file,
            client_certificate_file=settings.client_certificate_file,
            verify_tls=settings.verify_tls,
            environment_proxy=settings.environment_proxy,
        )


@dataclass(slots=True)
class _Shared:
    client: Client
    holders: int = 0


@dataclass(slots=True)
class _Pool:
    clients: dict[ConnectionKind, _Shared] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


_POOLS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = WeakKeyDictionary()


async def take_client(kind: ConnectionKind) -> Client:
    """The shared client of this kind on the running loop; give it back with `release_client`."""
    pool = _POOLS.setdefault(asyncio.get_running_loop(), _Pool())
    async with pool.lock:
        shared = pool.clients.get(kind)
        if shared is None:
            shared = pool.clients[kind] = _Shared(await _built(kind))
        shared.holders += 1
        return shared.client


async def release_client(kind: ConnectionKind) -> None:
    """Give a taken client back; the last holder closes it."""
    pool = _POOLS[asyncio.get_running_loop()]
    async with pool.lock:
        shared = pool.clients[kind]
        shared.holders -= 1
        if not shared.holders:
            del pool.clients[kind]
            await shared.client.close()


async def _built(kind: ConnectionKind) -> Client:
    builder = (
        ClientBuilder()
        .connect_timeout(timedelta(seconds=kind.connect_timeout_seconds))
        .pool_idle_timeout(timedelta(seconds=_IDLE_SECONDS))
        .follow_redirects(enable=False)
        .referer(enable=False)
        # Nothing is unpacked, so that no reply can be larger than what came over the wire.
        .gzip(enable=False)
        .brotli(enable=False)
        .zstd(enable=False)
        .deflate(enable=False)
        .min_tls_version("TLSv1.2")
        .user_agent("parley")
    )
    if not kind.environment_proxy:
        builder = builder.no_proxy()
    if not kind.verify_tls:
        _log.warning("TLS certificates of model servers are not verified", setting="model.verify_tls: false")
        builder = builder.danger_accept_invalid_certs(enable=True)
    try:
        if kind.ca_file is not None:
            builder = builder.add_root_certificate_pem(await _pem("ca_file", kind.ca_file))
        if kind.client_certificate_file is not None:
            builder = builder.identity_pem(await _pem("client_certificate_file", kind.client_certificate_file))
        return builder.build()
    except ValueError as error:
        cause = getattr(error, "details", {}).get("causes") or [{"message": str(error)}]
        said = cause[-1]["message"]
        raise _unusable(f"model.ca_file, model.client_certificate_file: {said}; give PEM files") from None


async def _pem(key: str, path: Path) -> bytes:
    try:
        pem = await asyncio.to_thread(path.read_bytes)
    except OSError as error:
        raise _unusable(f"model.{key}: cannot read {path}: {error.strerror}; give the path of a PEM file") from None
    if b"-----BEGIN CERTIFICATE-----" not in pem:
        raise _unusable(f"model.{key}: {path} holds no certificate; give the path of a PEM file")
    return pem


def _unusable(message: str) -> ModelError:
    return ModelError(message, type="model_configuration", retryable=False)
