"""What a draw raises when it cannot give what was asked for."""

from collections.abc import Iterable

from engines.errors import ConfigurationInvalid
from engines.tool import Tool


class SamplingError(ConfigurationInvalid):
    """Not exactly `requested` tools can be drawn; `tools` are those that were found, perhaps of no use alone (D81)."""

    def __init__(self, message: str, *, requested: int, tools: Iterable[Tool] = ()) -> None:
        super().__init__(message, at=("sample", "k"))
        self.requested = requested
        self.tools = list(tools)
