"""Path templates: every value in its own segment."""

import re
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyreqwest.http import Url

from engines.errors import InvalidTool, ToolFailed
from engines.rest.path import PathTemplate
from engines.rest.styles import encoded

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
HOSTILE = [
    "../../admin?x=1",
    "../admin",
    "..%2fadmin",
    "%2e%2e",
    "%2e%2e%2fadmin",
    "%252e%252e",
    "a/../../b",
    "/",
    "//evil.example/",
    "\\",
    "..\\..\\admin",
    "\x00",
    "a\x00b",
    ";",
    "..;/admin",
    "?",
    "?admin=1",
    "#",
    "#fragment",
    "\uff0e\uff0e",
    "\uff0e\uff0e\uff0fadmin",
    "\u2025",
    " ",
    "%",
    "%zz",
    "\r\nX-Admin: 1",
    "@evil.example",
    ":8080",
    "http://evil.example",
    "{id}",
    "{{ session_id }}",
    "~",
    "😀",
]


def requested(template: str, values: dict[str, str], prefix: str = "") -> str:
    """Return the path as the client's own parser reads it, which takes dots away as browsers do."""
    path = PathTemplate.of(template, prefix=prefix).filled({name: encoded(text) for name, text in values.items()})
    url = Url(f"http://api.example{path}")
    assert (url.host_str, url.port, url.query_string) == ("api.example", None, None)
    assert url.path == path
    return path


@pytest.mark.parametrize("value", HOSTILE)
def test_d55_a_value_stays_in_its_segment(value: str) -> None:
    path = requested("/orders/{id}/lines", {"id": value}, prefix="/api/v3/")
    assert re.fullmatch(r"/api/v3/orders/[^/]+/lines", path)
    assert unquote(path.split("/")[4]) == value


@given(value=TEXTS)
@example("..")
@example(".")
@example("..;x")
def test_sec_s5_any_text_keeps_segments_and_prefix_or_is_refused(value: str) -> None:
    try:
        path = requested("/a/{x}/b/{y}", {"x": value, "y": value}, prefix="/base")
    except ToolFailed:
        assert value in {".", ".."}
        return
    segments = path.split("/")
    assert segments[:3] == ["", "base", "a"]
    assert len(segments) == 6
    assert unquote(segments[3]) == unquote(segments[5]) == value


@pytest.mark.parametrize("value", [".", ".."])
@pytest.mark.parametrize("template", ["/{x}", "/a/{x}/b", "/a/{x}"])
def test_sec_s5_a_segment_of_dots_is_refused(template: str, value: str) -> None:
    with pytest.raises(ToolFailed, match="a segment of dots goes up in the path"):
        requested(template, {"x": value})


def test_sec_s5_values_that_become_dots_together_are_refused() -> None:
    with pytest.raises(ToolFailed, match="'x' or 'y'"):
        requested("/a/{x}{y}/b", {"x": ".", "y": "."})
    with pytest.raises(ToolFailed):
        PathTemplate.of("/a/{x}{y}").filled({"x": "..", "y": ";v=1"})  # some servers cut at the semicolon
    assert requested("/files/{name}.json", {"name": ".."}) == "/files/...json"


@pytest.mark.parametrize("template", ["/../admin", "/a/./b", "/a/%2e%2e/b", "/a/.%2E"])
def test_sec_s5_a_template_that_goes_up_is_refused(template: str) -> None:
    with pytest.raises(InvalidTool, match="goes up by dots"):
        PathTemplate.of(template, prefix="/api")


def test_a_template_may_hold_what_urls_cannot() -> None:
    assert PathTemplate.of("/straße/100%/a b/%41|x", prefix="/").filled({}) == "/stra%C3%9Fe/100%25/a%20b/%41%7Cx"
    assert PathTemplate.of("orders").filled({}) == "/orders"


def test_a_template_with_a_query_or_a_fragment_keeps_the_query_apart() -> None:
    template = PathTemplate.of("/?Action=Describe Items&x={y}#X-Amz", prefix="/base")
    assert (template.filled({}), template.query) == ("/base/", "Action=Describe%20Items&x=%7By%7D")
