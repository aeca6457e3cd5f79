"""Every error that a floor declares gets an exit code; a bug keeps its traceback."""

import pytest

from conversations.errors import RecipeInvalid
from engines.errors import ConfigurationInvalid
from jobs.errors import BrokerUnreachable, RunConflict
from producer.errors import DependencyUnreachable, InputInvalid, Interrupted, UsageInvalid, WorkersKeepDying
from producer.failures import exit_code_of, message_of
from results.errors import CorruptShard, InvalidKey, StoreRefused, StoreUnavailable


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageInvalid("x"), 2),
        (InvalidKey("x"), 2),
        (InputInvalid("x"), 3),
        (RecipeInvalid("x"), 3),
        (ConfigurationInvalid("x"), 3),
        (RunConflict("x"), 3),
        (DependencyUnreachable("x"), 5),
        (BrokerUnreachable("redis://localhost", "x"), 5),
        (StoreRefused("x"), 5),
        (StoreUnavailable("x"), 5),
        (CorruptShard("x"), 1),
        (WorkersKeepDying("x"), 1),
        (Interrupted("x"), 130),
        (KeyError("a bug"), None),
        (ValueError("a bug"), None),
    ],
)
def test_the_exit_code_of_every_kind_of_failure(error: Exception, code: int | None) -> None:
    assert exit_code_of(error) == code


def test_the_other_errors_of_a_recipe_are_told_too() -> None:
    error = RecipeInvalid("first", file="r.yaml", line=1, column=2)
    error.others = (RecipeInvalid("second", file="r.yaml", line=3, column=4),)
    assert message_of(error) == "parley: r.yaml:1:2: first\nr.yaml:3:4: second"
