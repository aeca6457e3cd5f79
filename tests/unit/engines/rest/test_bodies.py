"""Bodies in their media types, read back by parsers that are not ours."""

import email
import email.policy
import json
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.errors import ToolFailed
from engines.loaders.openapi.metadata import RestBody, RestParameter
from engines.rest.bodies import Content, Fields, content_of_fields, content_of_value

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def fields(**values: Any) -> Fields:
    return {name: (parameter(name), value) for name, value in values.items()}


def parameter(name: str, **more: Any) -> RestParameter:
    return RestParameter.model_validate({"name": name, "location": "body", **more})


def body(kind: str, **more: Any) -> RestBody:
    return RestBody.model_validate({"content_type": kind, **more})


def whole(kind: str, **more: Any) -> RestBody:
    return body(kind, mode="whole", argument="body", **more)


def parts_of(content: Content) -> list[tuple[str, str | None, str, bytes]]:
    """(name, file name, type, data) of every part, as the standard library reads them."""
    raw = f"Content-Type: {content.type}\r\n\r\n".encode() + content.data
    message = email.message_from_bytes(raw, policy=email.policy.HTTP)
    found = []
    for part in message.iter_parts():
        data = part.get_payload(decode=True)
        assert isinstance(data, bytes)
        name = part.get_param("name", header="content-disposition")
        found.append((str(name), part.get_filename(), part.get_content_type(), data))
    return found


@pytest.mark.parametrize(
    "kind", ["application/json", "application/merge-patch+json", "application/json; charset=utf-8"]
)
def test_d57_fields_are_a_json_object(kind: str) -> None:
    content = content_of_fields(body(kind), fields(a=1, b={"c": [None, True]}))
    assert (content.type, json.loads(content.data)) == (kind, {"a": 1, "b": {"c": [None, True]}})


def test_d57_a_media_type_of_any_kind_is_json() -> None:
    assert content_of_fields(body("*/*"), fields(a=1)) == Content("application/json", b'{"a":1}')


def test_fields_are_a_form() -> None:
    given_fields = fields(a="x y&z=1", list=[1, 2], object={"k": "v"}, none=None)
    content = content_of_fields(body("application/x-www-form-urlencoded"), given_fields)
    assert parse_qsl(content.data.decode()) == [("a", "x y&z=1"), ("list", "1"), ("list", "2"), ("k", "v")]


def test_a_form_field_may_be_json_or_deep() -> None:
    described = {
        "filter": (parameter("filter", content_type="application/json"), {"a": 1}),
        "deep": (parameter("deep", style="deepObject", explode=True), {"b": 2}),
    }
    content = content_of_fields(body("application/x-www-form-urlencoded"), described)
    assert parse_qsl(content.data.decode()) == [("filter", '{"a":1}'), ("deep[b]", "2")]


@given(value=TEXTS)
def test_sec_s6_a_form_value_is_one_pair_whatever_it_holds(value: str) -> None:
    content = content_of_fields(body("application/x-www-form-urlencoded"), fields(a=value))
    assert parse_qsl(content.data.decode(), keep_blank_values=True, strict_parsing=True) == [("a", value)]


def test_fields_are_a_multipart() -> None:
    described = {
        "title": (parameter("title"), "straße"),
        "file": (parameter("file", base64=True), "AAEC/w=="),
        "image": (parameter("image", base64=True, content_type="image/png"), "iVBORw=="),
        "tags": (parameter("tags"), ["a", "b"]),
        "meta": (parameter("meta"), {"k": 1}),
        "none": (parameter("none"), None),
    }
    assert parts_of(content_of_fields(body("multipart/form-data"), described)) == [
        ("title", None, "text/plain", "straße".encode()),
        ("file", "file", "application/octet-stream", b"\x00\x01\x02\xff"),
        ("image", "image", "image/png", b"\x89PNG"),
        ("tags", None, "text/plain", b"a"),
        ("tags", None, "text/plain", b"b"),
        ("meta", None, "application/json", b'{"k":1}'),
    ]


@pytest.mark.parametrize("value", ["x\r\n--boundary--\r\n", '"\r\nContent-Type: text/html\r\n\r\n<script>', "--", ""])
def test_sec_s6_a_part_stays_one_part(value: str) -> None:
    content = content_of_fields(body("multipart/form-data"), fields(a=value, b="last"))
    assert [(name, data) for name, _, _, data in parts_of(content)] == [("a", value.encode()), ("b", b"last")]


def test_sec_s6_the_boundary_cannot_be_said_by_a_value() -> None:
    first = content_of_fields(body("multipart/form-data"), fields(a="x"))
    boundary = first.type.partition("boundary=")[2]
    second = content_of_fields(body("multipart/form-data"), fields(a=f"--{boundary}--"))
    assert [data for *_, data in parts_of(second)] == [f"--{boundary}--".encode()]


def test_sec_s6_the_name_of_a_field_stays_in_its_quotes() -> None:
    name = 'a"; filename="evil.sh"\r\nX-Admin: 1'
    content = content_of_fields(body("multipart/form-data"), {name: (parameter(name), "v")})
    assert b'name="a%22; filename=%22evil.sh%22%0D%0AX-Admin: 1"\r\n' in content.data


@pytest.mark.parametrize(
    ("described", "value", "data"),
    [
        (whole("application/json"), [1, 2], b"[1,2]"),
        (whole("application/json"), "text", b'"text"'),
        (whole("text/plain"), "straße", "straße".encode()),
        (whole("text/plain"), {"a": 1}, b'{"a":1}'),
        (whole("application/xml"), "<a/>", b"<a/>"),
        (whole("application/octet-stream", base64=True), "AAEC/w==", b"\x00\x01\x02\xff"),
        (whole("application/x-www-form-urlencoded"), {"a": "b c"}, b"a=b%20c"),
    ],
)
def test_a_body_may_be_one_argument(described: RestBody, value: Any, data: bytes) -> None:
    assert content_of_value(described, value) == Content(described.content_type, data)


@pytest.mark.parametrize("value", ["not base64!", "AAE", 7, None, "AA\nEC"])
def test_text_that_is_no_base64_is_refused(value: Any) -> None:
    with pytest.raises(ToolFailed, match="argument 'body': not base64 text"):
        content_of_value(whole("application/octet-stream", base64=True), value)


def test_integers_and_odd_texts_survive_as_json() -> None:
    content = content_of_value(whole("application/json"), {"id": 2**70, "half": "\ud800"})
    assert json.loads(content.data) == {"id": 2**70, "half": "\ud800"}


def test_a_value_nested_too_deeply_is_refused() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ToolFailed, match="cannot be written as JSON"):
        content_of_value(whole("application/json"), value)
