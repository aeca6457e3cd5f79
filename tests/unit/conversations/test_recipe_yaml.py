"""YAML that may be hostile (rule S16)."""

import pytest

from conversations.errors import RecipeInvalid
from conversations.recipe_yaml import read_yaml


def refused(text: str) -> str:
    with pytest.raises(RecipeInvalid) as caught:
        read_yaml(text, "r.yaml")
    return str(caught.value)


def test_values_become_plain_json() -> None:
    text = "a: 2024-01-31\nb: 0x10\nc: 1_000\nd: yes\ne: 1.5\nf: ~\ng: true\n"
    text += "h: >\n  folded\n  text\ni: 'q'\nj: [1, {k: v}]\n"
    data = read_yaml(text, "r.yaml").data
    assert data == {
        "a": "2024-01-31",
        "b": 16,
        "c": 1000,
        "d": "yes",
        "e": 1.5,
        "f": None,
        "g": True,
        "h": "folded text\n",
        "i": "q",
        "j": [1, {"k": "v"}],
    }
    plain = {str, int, float, bool, type(None), list}
    assert all(type(value) in plain for value in data.values())


def test_keys_and_values_have_their_places() -> None:
    source = read_yaml("a:\n  - b: 1\n    c: [x, y]\n", "r.yaml")
    assert source.position(("a", 0, "c"), of_key=True) == (3, 5)
    assert source.position(("a", 0, "c")) == (3, 8)
    assert source.position(("a", 0, "c", 1)) == (3, 12)
    assert source.position(("a", 0, "missing")) == (2, 5)
    assert source.position(("nowhere",)) == (1, 1)


def test_a_reference_needs_no_quotes_even_between_braces() -> None:
    text = "m: {key: ${KEY}, url: ${URL:-http://h:1/v1}, esc: $${X}}\nn: ${A} and $${B}\no: |\n  ${C}\n${D}: x\n"
    source = read_yaml(text, "r.yaml")
    assert source.data == {
        "m": {"key": "${KEY}", "url": "${URL:-http://h:1/v1}", "esc": "$${X}"},
        "n": "${A} and $${B}",
        "o": "${C}\n",
        "${D}": "x",
    }
    assert source.position(("m", "url")) == (1, 23)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: !!python/object/apply:os.system ['touch /tmp/x']", "r.yaml:1:4: the tag"),
        ("a: !mine {b: 1}", "r.yaml:1:4: the tag '!mine' is not allowed in a recipe; remove it"),
        ("a: !!binary aGk=", "r.yaml:1:4: the tag"),
        ("a: 1\nb: 2\na: 3\n", "r.yaml:3:1: not valid YAML: found duplicate key"),
        ("a: [1\nb: 2\n", "r.yaml:2:2: not valid YAML: expected ',' or ']'"),
        ("a: 1\n---\nb: 2\n", "r.yaml:2:1: not valid YAML: but found another document"),
        ("a: &x [*x]\n", "r.yaml:1:8: `*x` stands inside of what it names"),
        ("- a\n", "r.yaml:1:1: a recipe is a mapping"),
        ("", "r.yaml:1:1: a recipe is a mapping"),
        ("just text", "r.yaml:1:1: a recipe is a mapping"),
        ("a:\n  b: .nan\n", "r.yaml:2:6: a.b: nan is no number that JSON can hold"),
        ("a:\n  1: x\n", "r.yaml:2:3: a.1: the key 1 is not text; put it in quotes"),
        ("a: \x00", "r.yaml: not valid YAML"),
        (f"a: {'9' * 5000}", "r.yaml: not valid YAML"),
        ("a: *nobody", "r.yaml:1:4: not valid YAML: found undefined alias"),
        ("<<: 3\na: 1", "not valid YAML"),
    ],
)
def test_what_is_no_recipe_says_where(text: str, said: str) -> None:
    assert said in refused(text)


def test_sec_s11_a_duplicate_key_does_not_show_its_values() -> None:
    said = refused('model:\n  api_key: sk-canary-1\n  api_key: "sk-canary\\n-2"\n')
    assert said == 'r.yaml:3:3: not valid YAML: found duplicate key "api_key" while constructing a mapping'


def test_sec_s16_depth_is_bounded() -> None:
    assert "r.yaml:1:65: nested deeper than 64 levels" in refused("[" * 100_000)
    read_yaml("a: " + "[" * 62 + "]" * 62, "r.yaml")


def test_sec_s16_aliases_are_bounded() -> None:
    assert "more than 100 aliases" in refused("a: &x 1\nb: [" + "*x, " * 101 + "1]")


def test_sec_s16_a_billion_laughs_are_not_written_out() -> None:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 10)]
    assert "more than 200000 values" in refused("\n".join(lines))


def test_sec_s16_a_megabyte_of_open_references_takes_no_longer_than_it_is() -> None:
    text = "${A:-" * 200_000
    assert read_yaml(f"a: '{text}'\n", "r.yaml").data == {"a": text}


def test_anchors_and_merges_serve_as_usual() -> None:
    source = read_yaml("base: &b {x: 1}\nu:\n  <<: *b\n  y: 2\nv: *b\n", "r.yaml")
    assert source.data == {"base": {"x": 1}, "u": {"x": 1, "y": 2}, "v": {"x": 1}}
