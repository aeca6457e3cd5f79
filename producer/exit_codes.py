"""The exit codes: what the shell, and Kubernetes, learn of how a command ended."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the shell sees."""

    ALL_OK = 0
    INTERNAL = 1
    USAGE = 2
    INVALID = 3
    JOBS_NOT_OK = 4
    UNREACHABLE = 5
    INTERRUPTED = 130
