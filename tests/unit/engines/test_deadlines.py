"""Every call has a deadline: there is no way to ask for none."""

import pytest
from pydantic import ValidationError

from engines.toolset import ToolDefaults


def test_e23_a_call_has_thirty_seconds_unless_its_tool_says_otherwise() -> None:
    assert ToolDefaults().timeout_seconds == 30


@pytest.mark.parametrize("seconds", [0, -1, None, float("inf"), float("nan")])
def test_e23_no_deadline_is_not_to_be_had(seconds: object) -> None:
    with pytest.raises(ValidationError, match="timeout_seconds"):
        ToolDefaults.model_validate({"timeout_seconds": seconds})
