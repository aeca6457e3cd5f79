"""What goes wrong between this process and a server: each message names the host and the cause, never a secret."""

from enum import StrEnum

from engines.errors import EngineError


class FailureKind(StrEnum):
    """Where it went wrong."""

    connect = "connect"  # no name, no route, nobody listens: nothing was sent
    tls = "tls"  # the connection stood and its certificate or protocol did not: nothing was sent
    refused_address = "refused_address"  # an address that this configuration may not reach: nothing was sent
    refused_request = "refused_request"  # a URL or a header that must not leave this process: nothing was sent
    lost = "lost"  # the connection ended while the request was under way
    timeout = "timeout"  # the deadline passed, at whatever step
    too_large = "too_large"  # the answer is larger than it may be
    protocol = "protocol"  # the answer is not what HTTP allows


NOTHING_SENT = frozenset(
    {FailureKind.connect, FailureKind.tls, FailureKind.refused_address, FailureKind.refused_request}
)


class NetworkFailure(EngineError):
    """A request without a usable answer."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message

    @property
    def nothing_was_sent(self) -> bool:
        """Whether the server cannot have seen the request: even one that changes things may be sent again."""
        return self.kind in NOTHING_SENT

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed later without anybody changing anything."""
        return self.kind in {FailureKind.connect, FailureKind.lost, FailureKind.timeout}


class AddressRefused(NetworkFailure):
    """The host stands at an address that this configuration may not reach (rules S7)."""

    def __init__(self, message: str) -> None:
        super().__init__(FailureKind.refused_address, message)
