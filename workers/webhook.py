"""Tells somebody outside, at a URL of the recipe, that a conversation waits for them; best effort, and bounded."""

import asyncio

import orjson
import structlog

from engines.network.connection import ConnectionSettings
from engines.network.failures import NetworkFailure
from engines.network.http_client import HttpClient
from jobs.paused import PausedJob

log = structlog.get_logger(__name__)

_TRIES = 3
_FIRST_PAUSE_SECONDS = 0.5
_TIMEOUT_SECONDS = 10.0
_FIRST_ERROR_STATUS = 400
_HEADERS = (("content-type", "application/json"),)


async def tell(settings: ConnectionSettings, run_id: str, job: PausedJob) -> None:
    """POST `{"run_id", "job_id", "index", "calls": [{"call_id", "name", "arguments", "seconds"}]}`; never raises.

    Nobody depends on it: what waits can be asked for at any time.
    """
    calls = [call.to_dict() for call in job.calls]
    body = orjson.dumps({"run_id": run_id, "job_id": job.job_id, "index": job.index, "calls": calls})
    cause = ""
    try:
        async with HttpClient(settings, timeout_seconds=_TIMEOUT_SECONDS) as client:
            for attempt in range(_TRIES):
                if attempt:
                    await asyncio.sleep(_FIRST_PAUSE_SECONDS * 2**attempt)
                try:
                    answer = await client.request("POST", str(settings.url), headers=_HEADERS, content=body)
                except NetworkFailure as failure:
                    cause = str(failure)
                    continue
                if answer.status < _FIRST_ERROR_STATUS:
                    return
                cause = f"HTTP {answer.status}"
    except Exception as failure:  # noqa: BLE001 - whatever it is, the conversation is paused and can be answered
        cause = f"{type(failure).__name__}: {failure}"
    log.warning("webhook not told", run=run_id, index=job.index, cause=cause)
