"""Anything a tool gives can be written down."""

import orjson
import pytest

from conversations.encoding import encode_json


class Odd:
    def __str__(self) -> str:
        return "odd"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": [1, 2.5, None, True, "ü"]}, {"a": [1, 2.5, None, True, "ü"]}),
        ({"half": "\ud800x"}, {"half": "?x"}),
        ({"huge": 2**70}, {"huge": str(2**70)}),
        ({1: "key"}, {"1": "key"}),
        ({"nan": float("nan"), "huge": 2**70}, {"nan": None, "huge": str(2**70)}),
        ({"set": {1}}, {"set": [1]}),
        ({"odd": Odd()}, {"odd": "odd"}),
    ],
)
def test_what_json_cannot_hold_is_replaced(value: object, written: object) -> None:
    assert orjson.loads(encode_json(value)) == written


def test_what_is_nested_too_deeply_is_cut() -> None:
    deep: list[object] = []
    for _ in range(400):
        deep = [deep]
    assert b"nested too deeply" in encode_json(deep)


def test_json_that_is_encoded_already_survives_the_slow_path() -> None:
    assert encode_json({"done": orjson.Fragment(b'{"a":1}'), "bad": "\ud800"}) == b'{"done":{"a":1},"bad":"?"}'
