"""The command that goes on with a run that was broken off."""

import shlex
import sys
from collections.abc import Sequence


def resume_command(arguments: Sequence[str], run_id: str) -> str:
    """The same command line; jobs that came through a pipe are gone, but the run has stored them: its id says which."""
    kept = list(arguments)
    if _drop_option(kept, "--jobs") == "-":
        _drop_option(kept, "--run-id")
        kept += ["--run-id", run_id, "--resume"]
    else:
        kept = list(arguments)
    return shlex.join(["parley", *kept])


def interruption_message(run_id: str) -> str:
    """What a person sees after Ctrl-C."""
    return f"interrupted; what is stored stays. To go on with the run:\n  {resume_command(sys.argv[1:], run_id)}"


def _drop_option(arguments: list[str], name: str) -> str | None:
    """Take an option and its value out of a command line; its value, or None when it was not given."""
    for position, argument in enumerate(arguments):
        if argument == name and position + 1 < len(arguments):
            value = arguments[position + 1]
            del arguments[position : position + 2]
            return value
        if argument.startswith(f"{name}="):
            del arguments[position]
            return argument.partition("=")[2]
    return None
