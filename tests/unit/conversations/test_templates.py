"""Texts with variables; missing ones are errors and the sandbox holds."""

import sys

import pytest

from conversations.errors import TemplateInvalid
from conversations.templates import render


def test_text_without_marks_comes_back_as_it_is() -> None:
    text = "a { b } % c"
    assert render(text, {}) is text


def test_variables_are_filled_in() -> None:
    text = "{{ city }}: {% for day in days %}{{ day }};{% endfor %}\n"
    assert render(text, {"city": "Ulm", "days": [1, 2]}) == "Ulm: 1;2;\n"


def test_what_a_variable_holds_is_not_rendered_again() -> None:
    assert render("{{ text }}", {"text": "{{ 7 * 7 }} <b>"}) == "{{ 7 * 7 }} <b>"


def test_a_missing_variable_is_an_error_that_names_it() -> None:
    with pytest.raises(TemplateInvalid, match=r"'city' is undefined; a job's `variables` fill it in"):
        render("in {{ city }}", {})


@pytest.mark.parametrize(
    "text",
    [
        "{{ open",
        "{% if %}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ x.__init__.__globals__ }}",
        "{{ 1 / 0 }}",
        "{{ [][3] + 1 }}",
        "{{ range(10000000) | list }}",
    ],
)
def test_what_is_wrong_or_forbidden_is_a_typed_error(text: str) -> None:
    with pytest.raises(TemplateInvalid, match=r"^template "):
        render(text, {"x": object()})


def test_importing_the_module_does_not_import_jinja2() -> None:
    import subprocess

    code = "import conversations.templates, sys; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
