"""The transport's exceptions in our words (rules S10, S11)."""

import ssl

import pytest
from pyreqwest.exceptions import ConnectError, RequestError

from engines.network.causes import connection_failure, failure_of, lost
from engines.network.failures import FailureKind
from engines.network.origins import Origin

PLAIN = Origin("http", "api.example", 80)
SECURE = Origin("https", "api.example", 443)


def test_sec_s11_a_cause_that_quotes_the_url_is_left_out() -> None:
    quoting = {"message": "builder error for url (http://api.example/?key=canary)"}
    for details in ({"causes": [quoting]}, {"causes": [{"message": "client error"}, quoting]}):
        told = failure_of(RequestError("http://api.example/?key=canary", details), PLAIN)  # type: ignore[arg-type]
        assert "canary" not in told.message
        assert "api.example" in told.message


@pytest.mark.parametrize(
    ("error", "origin", "kind"),
    [
        (ConnectionRefusedError(111, "Connection refused"), PLAIN, FailureKind.connect),
        (ConnectionRefusedError(111, "Connection refused"), SECURE, FailureKind.connect),
        (OSError(113, "No route to host"), SECURE, FailureKind.connect),
        (ConnectionResetError(104, "Connection reset by peer"), PLAIN, FailureKind.connect),
        (ConnectionResetError(104, "Connection reset by peer"), SECURE, FailureKind.tls),
        (ConnectionAbortedError(), SECURE, FailureKind.tls),
        (ssl.SSLCertVerificationError(1, "certificate verify failed"), SECURE, FailureKind.tls),
    ],
)
def test_sec_s10_a_handshake_that_ends_is_told_from_a_server_that_is_down(
    error: OSError, origin: Origin, kind: FailureKind
) -> None:
    told = connection_failure(error, origin)

    assert told.kind is kind
    assert told.nothing_was_sent
    assert told.message.startswith("api.example: ")


def test_sec_s10_an_alert_is_the_servers_refusal_of_this_client() -> None:
    causes = {
        "causes": [{"message": "client error (SendRequest)"}, {"message": "received fatal alert: CertificateRequired"}]
    }
    told = failure_of(ConnectError("connection error", causes), SECURE)  # type: ignore[arg-type]

    assert told.kind is FailureKind.tls
    assert "client_certificate?" in told.message
    assert "client_certificate?" in lost(SECURE).message
    assert "client_certificate?" not in lost(PLAIN).message
