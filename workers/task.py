"""The task that messages name: checks what the message says and hands it to the worker."""

from typing import Any

import structlog
from pydantic import TypeAdapter, ValidationError

from jobs.job import JobReference
from jobs.run import is_run_id

log = structlog.get_logger(__name__)

MOST_NAMESPACES = 64
_INDEX = TypeAdapter(int)
_NAMESPACES = TypeAdapter(list[str])


def job_of_message(run_id: Any, index: Any, namespaces: Any = ()) -> JobReference | None:
    """Return the job that a message names, None for one that no producer of ours wrote."""
    try:
        number = _INDEX.validate_python(index, strict=True)
        names = _NAMESPACES.validate_python(list(namespaces), strict=True)
    except (ValidationError, TypeError):
        return None
    if not isinstance(run_id, str) or not is_run_id(run_id) or number < 0 or len(names) > MOST_NAMESPACES:
        return None
    return JobReference(run_id, number, tuple(names))
