"""Header names and values that may leave (rule S6)."""

import pytest

from engines.network.headers import header_problem, is_for_configuration_only


@pytest.mark.parametrize(
    "value",
    [
        "x\r\nX-Admin: 1",
        "x\nX-Admin: 1",
        "x\rX-Admin: 1",
        "x\x00",
        "\u560d\u560aX-Admin: 1",
        "\u010a",
        "é",
        "x\x7f",
        "x\x0b",
        " x",
        "x ",
        "\tx",
        "x" * 16_385,
    ],
)
def test_sec_s6_values_hold_visible_ascii_alone(value: str) -> None:
    problem = header_problem("X-Name", value)

    assert problem is not None
    assert "X-Admin" not in problem


@pytest.mark.parametrize("value", ["", "x", "a b\tc", "Bearer abc.def==", "*/*;q=0.5", "~!@#$%^&*()"])
def test_ordinary_values_are_sent(value: str) -> None:
    assert header_problem("X-Name", value) is None


@pytest.mark.parametrize("name", ["", "x y", "x:", "x\r\ny", "x\n", "é", "x\x00", "(x)", "x" * 257, "X-Name "])
def test_sec_s6_names_are_tokens(name: str) -> None:
    assert header_problem(name, "1") is not None


@pytest.mark.parametrize(
    "name",
    ["Host", "Content-Length", "transfer-encoding", "Connection", "Keep-Alive", "TE", "Trailer", "Upgrade", "Expect"],
)
def test_sec_s6_what_frames_a_request_is_set_by_nobody(name: str) -> None:
    assert header_problem(name, "1") is not None
    assert is_for_configuration_only(name)


@pytest.mark.parametrize(
    "name",
    ["Authorization", "cookie", "X-Forwarded-For", "x-forwarded-host", "Forwarded", "Proxy-Foo", "Sec-Fetch-Site"],
)
def test_sec_s6_who_asks_is_for_the_configuration_alone(name: str) -> None:
    assert is_for_configuration_only(name)
    assert not is_for_configuration_only("X-Request-Id")
