"""What the answer to a request makes of a call (rules D58, D59)."""

from typing import Any

import pytest

from engines.errors import ToolFailed
from engines.network.failures import FailureKind, NetworkFailure
from engines.rest.answer import raise_failed, value_or_failure
from engines.tool import ErrorType


def told(status: int, body: bytes = b"", **more: Any) -> Any:
    said = {"content_type": "application/json", "retry_after": None, "date": None, "now": 0.0, **more}
    return value_or_failure(status, body, **said)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_d58_a_2xx_is_a_result(status: int) -> None:
    assert told(status, b'{"a":1}') == {"a": 1}


@pytest.mark.parametrize(
    ("status", "error_type", "may_pass"),
    [
        (300, ErrorType.execution, None),
        (302, ErrorType.execution, None),
        (304, ErrorType.execution, None),
        (400, ErrorType.execution, False),
        (401, ErrorType.permission, False),
        (403, ErrorType.permission, False),
        (404, ErrorType.execution, False),
        (408, ErrorType.timeout, True),
        (422, ErrorType.execution, False),
        (429, ErrorType.network, True),
        (500, ErrorType.network, True),
        (501, ErrorType.execution, False),
        (502, ErrorType.network, True),
        (503, ErrorType.network, True),
        (504, ErrorType.timeout, True),
        (999, ErrorType.execution, False),
    ],
)
def test_d58_other_statuses_are_errors_and_d59_some_may_pass(
    status: int, error_type: ErrorType, may_pass: bool | None
) -> None:
    with pytest.raises(ToolFailed, match=f"HTTP {status}: ") as caught:
        told(status, b"{}")
    assert (caught.value.error_type, caught.value.may_pass) == (error_type, may_pass)


def test_d58_an_error_shows_the_first_200_characters() -> None:
    with pytest.raises(ToolFailed) as caught:
        told(404, ("ä" * 300).encode())
    assert caught.value.message == "HTTP 404: " + "ä" * 200


def test_f24_an_error_that_is_no_utf_8_is_told_all_the_same() -> None:
    with pytest.raises(ToolFailed, match="HTTP 500: �x"):
        told(500, b"\xffx")


@pytest.mark.parametrize(
    ("retry_after", "date", "seconds"),
    [
        ("7", None, 7),
        ("0.5", None, 0.5),
        ("-3", None, 0),
        ("Wed, 21 Oct 2015 07:28:10 GMT", None, 10),
        ("Wed, 21 Oct 2015 07:28:10 GMT", "Wed, 21 Oct 2015 07:28:09 GMT", 1),
        ("Wed, 21 Oct 2015 07:27:00 GMT", None, 0),
        ("soon", None, None),
        ("nan", None, None),
        ("", None, None),
        (None, None, None),
    ],
)
def test_f24_retry_after_is_seconds_or_a_date(retry_after: str | None, date: str | None, seconds: float | None) -> None:
    with pytest.raises(ToolFailed) as caught:
        told(503, retry_after=retry_after, date=date, now=1445412480.0)
    assert caught.value.retry_after_seconds == seconds


@pytest.mark.parametrize(
    ("kind", "error_type", "may_pass"),
    [
        (FailureKind.connect, ErrorType.network, True),
        (FailureKind.lost, ErrorType.network, True),
        (FailureKind.tls, ErrorType.network, False),
        (FailureKind.protocol, ErrorType.network, False),
        (FailureKind.timeout, ErrorType.timeout, None),
        (FailureKind.too_large, ErrorType.unparseable_result, None),
        (FailureKind.refused_address, ErrorType.permission, None),
        (FailureKind.refused_request, ErrorType.permission, None),
    ],
)
def test_d58_no_answer_is_an_error_with_its_cause(
    kind: FailureKind, error_type: ErrorType, may_pass: bool | None
) -> None:
    with pytest.raises(ToolFailed, match="what the network said") as caught:
        raise_failed(NetworkFailure(kind, "what the network said"))
    assert (caught.value.error_type, caught.value.may_pass) == (error_type, may_pass)
