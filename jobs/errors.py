"""The failures of this floor: what went wrong with a run or with the broker, and the way out."""

from urllib.parse import urlsplit


class JobsError(Exception):
    """The root of this floor's exceptions."""


class BrokerUnreachable(JobsError):
    """The broker (Redis) does not answer; the message names its host and never its password."""

    def __init__(self, url: str, cause: str) -> None:
        super().__init__(
            f"broker {broker_address(url)} is unreachable: {cause}; "
            "start it, or point --broker or PARLEY_BROKER at a running Redis (redis://host:port/db)"
        )


class RunUnknown(JobsError):
    """The run is not in the ledger."""


class RunConflict(JobsError):
    """Another run with the same id exists with other jobs or another recipe."""


class InputCorrupt(JobsError):
    """A stored input part or recipe is not what the run's manifest says it is."""


class LedgerCorrupt(JobsError):
    """The ledger answered something that this version does not understand."""


def broker_address(url: str) -> str:
    """Say where a broker is, without its credentials."""
    parts = urlsplit(url)
    if parts.scheme in {"unix", "redis+socket", "socket"}:
        return f"{parts.scheme}://{parts.path}"
    host = parts.hostname or "localhost"
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme or 'redis'}://{host}{port}{parts.path}"
