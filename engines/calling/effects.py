"""How far the calls of an engine reach: what may be rolled back, run beside its neighbours, or asked on a whim."""

from enum import StrEnum


class Effects(StrEnum):
    """What a call may change, and what its result may depend on."""

    nothing = "nothing"
    """It only looks something up: simulated live, calls of a batch at the same time."""
    session = "session"
    """The session in this process: simulated as a transaction that is rolled back, in call order."""
    backend = "backend"
    """Something beyond: simulated as the toolset says; in call order where the toolset is stateful."""
