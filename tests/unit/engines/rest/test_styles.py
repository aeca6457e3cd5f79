"""Values in paths, queries, headers and cookies: OpenAPI's table of styles, and that no value gets out of its place."""

from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.loaders.openapi.metadata import Style
from engines.rest.styles import cookie_pairs, encoded_but_reserved, header_text, path_text, query_pairs

ARRAY = ["blue", "black"]
OBJECT = {"R": 100, "G": 200}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def query(name: str, value: Any, style: Style = "form", *, explode: bool = True) -> str:
    return "&".join(f"{key}={text}" for key, text in query_pairs(name, value, style, explode=explode))


@pytest.mark.parametrize(
    ("style", "explode", "value", "text"),
    [
        ("simple", False, "blue", "blue"),
        ("simple", False, ARRAY, "blue,black"),
        ("simple", True, ARRAY, "blue,black"),
        ("simple", False, OBJECT, "R,100,G,200"),
        ("simple", True, OBJECT, "R=100,G=200"),
        ("label", False, "blue", ".blue"),
        ("label", False, ARRAY, ".blue,black"),
        ("label", True, ARRAY, ".blue.black"),
        ("label", False, OBJECT, ".R,100,G,200"),
        ("label", True, OBJECT, ".R=100.G=200"),
        ("matrix", False, "blue", ";color=blue"),
        ("matrix", False, "", ";color"),
        ("matrix", False, ARRAY, ";color=blue,black"),
        ("matrix", True, ARRAY, ";color=blue;color=black"),
        ("matrix", False, OBJECT, ";color=R,100,G,200"),
        ("matrix", True, OBJECT, ";R=100;G=200"),
    ],
)
def test_d54_path_styles(style: Style, explode: bool, value: Any, text: str) -> None:
    assert path_text("color", value, style, explode=explode) == text


@pytest.mark.parametrize(
    ("style", "explode", "value", "text"),
    [
        ("form", True, "blue", "color=blue"),
        ("form", True, "", "color="),
        ("form", True, ARRAY, "color=blue&color=black"),
        ("form", False, ARRAY, "color=blue,black"),
        ("form", True, OBJECT, "R=100&G=200"),
        ("form", False, OBJECT, "color=R,100,G,200"),
        ("spaceDelimited", False, ARRAY, "color=blue%20black"),
        ("pipeDelimited", False, ARRAY, "color=blue%7Cblack"),
        ("tabDelimited", False, ARRAY, "color=blue%09black"),
        ("deepObject", True, OBJECT, "color%5BR%5D=100&color%5BG%5D=200"),
        ("deepObject", True, {"a": {"b": 1}, "c": [1, 2]}, "color%5Ba%5D%5Bb%5D=1&color%5Bc%5D=1&color%5Bc%5D=2"),
        ("form", True, True, "color=true"),
        ("form", True, 1.5, "color=1.5"),
        ("form", True, [1, None, {"x": 1}], "color=1&color=%7B%22x%22%3A1%7D"),
        ("form", True, {"a": None, "b": 1}, "b=1"),
        ("form", False, {"a": None, "b": 1}, "color=b,1"),
        ("deepObject", True, {"a": None, "b": 1}, "color%5Bb%5D=1"),
        ("form", True, None, ""),
        ("form", True, [], ""),
        ("form", False, [], ""),
    ],
)
def test_d54_query_styles(style: Style, explode: bool, value: Any, text: str) -> None:
    assert query("color", value, style, explode=explode) == text


def test_d54_headers_and_cookies_are_simple_and_form() -> None:
    assert header_text(ARRAY) == "blue,black"
    assert header_text(OBJECT, explode=True) == "R=100,G=200"
    assert cookie_pairs("color", ARRAY) == [("color", "blue,black")]
    assert cookie_pairs("a;b", "x; y=z\r\n") == [("a%3Bb", "x%3B%20y%3Dz%0D%0A")]


def test_sec_s6_reserved_characters_that_may_stay_still_end_and_split_nothing() -> None:
    assert encoded_but_reserved("a/b:c?d,e") == "a/b:c?d,e"
    assert encoded_but_reserved("x&admin=1#f+%;[]'") == "x%26admin%3D1%23f%2B%25%3B%5B%5D%27"


@given(name=TEXTS.filter(bool), value=TEXTS)
def test_sec_s6_a_query_value_is_one_pair_whatever_it_holds(name: str, value: str) -> None:
    assert parse_qsl(query(name, value), keep_blank_values=True, strict_parsing=True) == [(name, value)]


@given(items=st.lists(TEXTS, min_size=1), style=st.sampled_from(["form", "spaceDelimited", "pipeDelimited"]))
def test_sec_s6_the_items_of_a_list_stay_apart(items: list[str], style: Style) -> None:
    (pair,) = query_pairs("color", [*items, "last"], style, explode=False)
    delimiter = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}[style]
    if style == "form":  # The other delimiters may also stand inside a value: RFC 6570 has no better.
        assert [unquote(text) for text in pair[1].split(delimiter)] == [*items, "last"]
    assert "&" not in pair[1]
