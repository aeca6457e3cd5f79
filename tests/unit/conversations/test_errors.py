"""What this floor raises says the thing, the cause and the way out."""

import pytest

from conversations import errors
from conversations.errors import ModelError, RecipeInvalid


def test_a_recipe_error_reads_file_line_column_message_hint() -> None:
    error = RecipeInvalid("model.modl: unknown key", file="r.yaml", line=3, column=5, hint="did you mean 'model'?")
    assert str(error) == "r.yaml:3:5: model.modl: unknown key; did you mean 'model'?"


def test_a_recipe_error_leaves_out_what_is_not_known() -> None:
    assert str(RecipeInvalid("too long", file="r.yaml")) == "r.yaml: too long"
    assert str(RecipeInvalid("too long")) == "too long"


def test_further_errors_of_a_recipe_follow_on_lines_of_their_own() -> None:
    error = RecipeInvalid("one", file="r.yaml", line=1, column=1)
    error.others = (RecipeInvalid("two", file="r.yaml", line=2, column=1),)
    assert str(error).splitlines() == ["r.yaml:1:1: one", "r.yaml:2:1: two"]


@pytest.mark.parametrize(
    ("kind", "type_", "retryable"),
    [
        ("ModelUnavailable", "model_unavailable", True),
        ("ModelTimeout", "model_timeout", True),
        ("RateLimited", "rate_limited", True),
        ("MalformedReply", "malformed_reply", True),
        ("ModelRefusedRequest", "model_refused_request", False),
        ("AuthenticationFailed", "authentication_failed", False),
        ("ContextOverflow", "context_overflow", False),
    ],
)
def test_a_model_error_knows_its_type_and_whether_trying_again_may_help(kind: str, type_: str, retryable: bool) -> None:
    error = getattr(errors, kind)("no")
    assert (error.type, error.retryable) == (type_, retryable)


def test_a_model_error_keeps_the_body_out_of_its_message() -> None:
    error = ModelError("the server said 500", status=500, body="sk-secret", type="odd", retryable=True)
    assert (str(error), error.type, error.retryable) == ("the server said 500", "odd", True)
