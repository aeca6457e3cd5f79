"""JSON from strangers is refused where parsers disagree about it, and every error says where it stands (S3)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producer.strict_json import MAX_DEPTH, StrictJSONError, offset_of, parse_strict

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_what_python_writes_is_read_back_unchanged(value: object) -> None:
    assert parse_strict(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "said", "offset"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "'c' stands twice", 23),
        ('{"a": 1, "\\u0061": 2}', "'a' stands twice", 9),
        ('{"a": NaN}', "NaN is not JSON", 6),
        ('{"a": -Infinity}', "-Infinity is not JSON", 6),
        ('{"a": 1e999}', "too large for a float", 6),
        ('{"a": 123456789012345678901}', "does not fit in 64 bits", 6),
        ('{"a": "\\ud800"}', "surrogate", 6),
        ('{"a": 1,}', "not valid JSON", 8),
        ('{"a": 1', "ends too early", 7),
        ("hello", "not a JSON object", 0),
    ],
)
def test_sec_s3_what_parsers_disagree_about_is_refused_with_its_place(text: str, said: str, offset: int) -> None:
    with pytest.raises(StrictJSONError, match=said) as caught:
        parse_strict(text)
    assert caught.value.offset == offset


def test_sec_s3_a_number_of_a_million_digits_is_refused_without_being_computed() -> None:
    with pytest.raises(StrictJSONError, match="64 bits") as caught:
        parse_strict('{"a": ' + "9" * 1_000_000 + "}")
    assert len(caught.value.message) < 200


def test_sec_s3_nesting_deeper_than_the_limit_is_refused_and_the_limit_itself_is_not() -> None:
    assert parse_strict("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    with pytest.raises(StrictJSONError, match="nested deeper") as caught:
        parse_strict("[" * 100_000 + "]" * 100_000)
    assert caught.value.offset == MAX_DEPTH


def test_brackets_inside_strings_are_not_nesting() -> None:
    text = json.dumps({"a": '[{"' * 100})
    assert parse_strict(text) == {"a": '[{"' * 100}


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert parse_strict('{"a": "\\ud83d\\ude00"}') == {"a": "😀"}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ((), "{"),
        (("a",), '"a"'),
        (("b", 1), '"x]'),
        (("b", 2, "c"), '"c"'),
        (("b", 2, "missing"), "{"),
        (("nowhere", 3), "{"),
    ],
)
def test_the_place_of_a_value_is_its_key_or_the_nearest_parent(path: tuple[str | int, ...], found: str) -> None:
    text = ' {"a": "\\"}", "b": [1.5e3 , "x]", {"c" : null}]}'
    assert text[offset_of(text, path) :].startswith(found)


@given(json_values, st.data())
def test_every_path_of_every_document_is_found(value: object, data: st.DataObject) -> None:
    path: tuple[str | int, ...] = ()
    here = value
    while isinstance(here, list | dict) and here:
        step = data.draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here))))
        path, here = (*path, step), here[step]
    text = json.dumps(value)
    rest = text[offset_of(text, path) :]
    last = path[-1] if path else None
    assert rest.startswith(json.dumps(last) if isinstance(last, str) else json.dumps(here))
