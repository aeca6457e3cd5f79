"""What a docstring says, in the three styles people write."""

import pytest

from engines.local.docstrings import Docstring, docstring_of

EXPECTED = Docstring(
    "Finds a route.\n\nBy car only.", {"start": "Where it begins, in words.", "goal": "Where it ends."}
)


def google(start: str, goal: str) -> None:
    """Finds a route.

    By car only.

    Args:
        start (str): Where it begins,
            in words.
        goal: Where it ends.

    Returns:
        goal: nothing that a model needs.

    Raises:
        start: never.
    """


def numpy(start: str, goal: str) -> None:
    """Finds a route.

    By car only.

    Parameters
    ----------
    start : str, optional
        Where it begins,
        in words.
    goal
        Where it ends.

    Returns
    -------
    start
        Nothing that a model needs.
    """


def sphinx(start: str, goal: str) -> None:
    """Finds a route.

    By car only.

    :param str start: Where it begins,
        in words.
    :param goal: Where it ends.
    :type goal: str
    :returns: start
    """


@pytest.mark.parametrize("function", [google, numpy, sphinx])
def test_a21_the_three_styles_say_the_same(function: object) -> None:
    assert docstring_of(function) == EXPECTED


def several(a: str, b: str, **c: str) -> None:
    """Shortest.

    Parameters
    ----------
    a, b : str
        Both.
    **c
        Others.
    """


def colons() -> None:
    """Note: this line is no section.

    Usage: neither is this
    Args:
    """


def silent() -> None: ...


def test_a21_odd_docstrings_lose_nothing() -> None:
    assert docstring_of(several) == Docstring("Shortest.", {"a": "Both.", "b": "Both.", "c": "Others."})
    assert docstring_of(colons) == Docstring("Note: this line is no section.\n\nUsage: neither is this")
    assert docstring_of(silent) == Docstring()
