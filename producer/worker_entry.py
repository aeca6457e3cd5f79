"""Starts Celery's own command with folders of the user's modules: `python -P worker_entry.py FOLDERS ARGUMENTS…`.

`python -m celery` and PYTHONPATH would put those folders before everything that is installed, where a user's package
called `jobs` or `results` would hide ours. Here they come last.
"""

import os
import sys
from pathlib import Path


def main(folders: str, arguments: list[str]) -> None:
    """Become `celery ARGUMENTS…`."""
    for folder in (str(Path(__file__).resolve().parent.parent), *folders.split(os.pathsep)):
        if folder not in sys.path:
            sys.path.append(folder)
    from celery.__main__ import main as celery  # noqa: PLC0415 - only once the path is complete

    sys.argv = ["celery", *arguments]
    celery()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
