"""TOML recipes: the standard parser's values, and places found by a second look."""

import pytest

from conversations.errors import RecipeInvalid
from conversations.recipe_toml import read_toml

TEXT = '''seed = 3
name.first = "x"

[model]
provider = "openai"   # a comment
  "base_url" = 'http://h'
extra = { top_k = 3, nested = {a = 1} }
prompt = """
[not a table]
temperature = 1
"""
top_p = 0.5

[[tools.registry]]
type = "file"

[[tools.registry]]
type = "mcp"
[tools.registry.defaults]
timeout = 3

[tools.engines."my.lm"]
type = "lm"
'''


def test_values_are_toml_as_plain_json() -> None:
    data = read_toml(TEXT + "[dates]\nday = 2024-01-31\n", "r.toml").data
    assert data["model"]["extra"] == {"top_k": 3, "nested": {"a": 1}}
    assert data["tools"]["registry"][1] == {"type": "mcp", "defaults": {"timeout": 3}}
    assert data["dates"] == {"day": "2024-01-31"}


@pytest.mark.parametrize(
    ("place", "line", "column"),
    [
        (("seed",), 1, 1),
        (("name", "first"), 2, 1),
        (("model",), 4, 2),
        (("model", "provider"), 5, 1),
        (("model", "base_url"), 6, 3),
        (("model", "extra", "top_k"), 7, 11),
        (("model", "temperature"), 4, 2),
        (("model", "top_p"), 12, 1),
        (("tools", "registry", 0, "type"), 15, 1),
        (("tools", "registry", 1), 17, 3),
        (("tools", "registry", 1, "type"), 18, 1),
        (("tools", "registry", 1, "defaults", "timeout"), 20, 1),
        (("tools", "engines", "my.lm", "type"), 23, 1),
    ],
)
def test_keys_have_their_places(place: tuple[str | int, ...], line: int, column: int) -> None:
    assert read_toml(TEXT, "r.toml").position(place, of_key=True) == (line, column)


def test_values_have_their_places() -> None:
    assert read_toml(TEXT, "r.toml").position(("model", "provider")) == (5, 12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 1\nb = = 2\n", "r.toml:2:5: not valid TOML: Invalid value"),
        ("a = 1\na = 2\n", "r.toml:2:6: not valid TOML: Cannot overwrite a value"),
        ("a = nan\n", "r.toml:1:5: a: nan is no number that JSON can hold"),
        ("a", "r.toml: not valid TOML: Expected '=' after a key in a key/value pair"),
        ("a = " + "[" * 100_000, "r.toml: not valid TOML"),
        (f"a = {'9' * 5000}", "r.toml: not valid TOML"),
    ],
)
def test_what_is_no_toml_says_where(text: str, said: str) -> None:
    with pytest.raises(RecipeInvalid) as caught:
        read_toml(text, "r.toml")
    assert said in str(caught.value)


MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a" + ".a" * (MEGABYTE // 2) + " = 1", "r.toml:1:1: not valid TOML: more than 100 names joined by dots"),
        ("x = 1\n[" + "'a' . " * (MEGABYTE // 6) + "b]", "r.toml:2:2: not valid TOML: more than 100 names"),
        ("a = " + "[" * MEGABYTE, "not valid TOML"),
        ("a = " + "{a = " * (MEGABYTE // 5), "not valid TOML"),
        ("a = " + "9" * MEGABYTE, "not valid TOML"),
        ("a = 1\na = 2", "not valid TOML: Cannot overwrite a value"),
        ("[a]\n[a]", "not valid TOML: Cannot declare"),
        ("a = nan", "nan is no number that JSON can hold"),
    ],
)
def test_sec_s16_toml_bombs_are_refused(text: str, said: str) -> None:
    with pytest.raises(RecipeInvalid) as caught:
        read_toml(text, "r.toml")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        " " * MEGABYTE,
        "# " + "a" * MEGABYTE,
        "# " + '"' * MEGABYTE,
        "# " + "a, " * (MEGABYTE // 3),
        "#" + "{" * MEGABYTE,
    ],
)
def test_sec_s16_long_lines_take_no_longer_than_they_are(line: str) -> None:
    assert read_toml(f"a = 1\n{line}\nb = 2\n", "r.toml").position(("b",)).line == 3


def test_keys_of_a_hundred_parts_and_texts_with_dots_are_fine() -> None:
    text = "a" + ".a" * 99 + " = 1\nversions = '1.2.3.4 and 5.6.7'\n"
    assert read_toml(text, "r.toml").data["versions"] == "1.2.3.4 and 5.6.7"
