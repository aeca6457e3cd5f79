"""Parts of a setup's answer."""

from typing import Any

import pytest

from engines.rest.captures import captured, check_source

BODY = {"data": {"id": "s-1", "a/b~c": 2, "list": [{"x": True}, 1.5]}, "none": None}
HEADERS = {
    "x-session": "h-1",
    "set-cookie": 'theme=dark; Path=/, sid="c-1"; Expires=Wed, 21 Oct 2015 07:28:00 GMT, last=z',
}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("/data/id", "s-1"),
        ("/data/a~1b~0c", 2),
        ("/data/list/0/x", True),
        ("/data/list/1", 1.5),
        ("header:X-Session", "h-1"),
        ("cookie:sid", "c-1"),
        ("cookie:theme", "dark"),
        ("cookie:last", "z"),
    ],
)
def test_a_single_value_is_found(source: str, value: Any) -> None:
    check_source(source)
    assert captured(source, BODY, HEADERS) == value


def test_the_whole_body_may_be_the_value() -> None:
    check_source("")
    assert captured("", "token", {}) == "token"


@pytest.mark.parametrize(
    "source",
    ["/nothing", "/data/list/9", "/data/list/-1", "/data/id/0", "/none", "header:X-No", "cookie:no", "cookie:dark"],
)
def test_what_is_not_there_is_told(source: str) -> None:
    with pytest.raises(LookupError, match="the answer has nothing at"):
        captured(source, BODY, HEADERS)


def test_an_object_or_a_huge_text_is_no_single_value() -> None:
    with pytest.raises(LookupError, match="is an object or a list"):
        captured("/data", BODY, {})
    with pytest.raises(LookupError, match="longer than 4096 characters"):
        captured("/x", {"x": "y" * 5000}, {})


@pytest.mark.parametrize("source", ["data/id", "$.data.id", "header:", "cookie:", "/a~2b", "/a~"])
def test_a_source_that_is_none_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match=r"JSON pointer"):
        check_source(source)
