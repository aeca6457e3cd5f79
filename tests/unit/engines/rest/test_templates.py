"""Placeholders in a recipe's requests."""

from typing import Any

import pytest

from engines.rest.templates import as_path_template, check_names, filled, filled_text, names_in


def test_values_are_put_in_as_they_are() -> None:
    assert filled_text("/s/{{ id }}/{{id}}-{{ n }}", {"id": "a", "n": 7}) == "/s/a/a-7"
    assert filled_text("{{ flag }}", {"flag": True}) == "true"


def test_sec_s4_what_a_value_holds_is_never_read_again() -> None:
    assert filled_text("{{ a }}", {"a": "{{ b }} \\1 {0.__class__} ${HOME}", "b": "x"}) == (
        "{{ b }} \\1 {0.__class__} ${HOME}"
    )


def test_a_text_that_is_one_placeholder_becomes_the_value_itself() -> None:
    template = {"id": "{{ id }}", "n": "{{ n }}", "text": "n={{ n }}", "list": ["{{ n }}", 1, None], "k{{ n }}": "v"}
    assert filled(template, {"id": "a", "n": 7}) == {"id": "a", "n": 7, "text": "n=7", "list": [7, 1, None], "k7": "v"}


def test_names_are_found_everywhere() -> None:
    assert sorted(names_in({"a{{ x }}": ["{{ y }}", {"b": "{{z}}"}], "c": 1})) == ["x", "y", "z"]
    assert as_path_template("/s/{{ id }}") == "/s/{id}"


@pytest.mark.parametrize("template", ["{{ }}", "{{ a.b }}", "{{ 7*7 }} {{", "}}", "{{a|upper}}", ["{{"]])
def test_sec_s4_nothing_else_stands_in_double_braces(template: Any) -> None:
    with pytest.raises(ValueError, match="nothing else stands in double braces"):
        list(names_in(template))


def test_a_name_that_nothing_gives_a_value_to_is_refused() -> None:
    with pytest.raises(ValueError, match=r"nothing gives a value to {{ sesion_id }}; did you mean 'session_id'\?"):
        check_names("/{{ sesion_id }}", {"session_id"})
