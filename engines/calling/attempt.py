"""One call carried out: its deadline, its retries, and whatever goes wrong turned into a result."""

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

from engines.calling.prepared import PreparedTool
from engines.calling.shortening import cut, shortened
from engines.errors import SessionLost, ToolFailed
from engines.plain import as_json
from engines.tool import ErrorType, ToolCall, ToolResult

Act = Callable[[], Awaitable[Any]]
Pause = Callable[[float], Awaitable[None]]

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_JITTER = 0.25
_ERROR_CHARS = 10_000


async def paused(seconds: float) -> None:
    """Wait at least so long, and up to a quarter longer: those who failed together do not come back together."""
    await asyncio.sleep(seconds * (1 + _JITTER * random.random()))


async def attempted(act: Act, call: ToolCall, prepared: PreparedTool, pause: Pause) -> ToolResult:
    """Run `act` within the tool's deadline, retries included (decision 10), and note how it went (rule U17).

    Raised are the job's own cancellation and SessionLost; all else is a result.
    """
    began, tries = perf_counter(), 0

    def counted() -> Awaitable[Any]:
        nonlocal tries
        tries += 1
        return act()

    result = await _within_deadline(counted, call, prepared, pause)
    result.debug.update(seconds=round(perf_counter() - began, 6), attempts=tries, engine=prepared.toolset.engine)
    return result


async def _within_deadline(act: Act, call: ToolCall, prepared: PreparedTool, pause: Pause) -> ToolResult:
    seconds = prepared.defaults.timeout_seconds
    try:
        async with asyncio.timeout(seconds) as deadline:
            result, retry_after = await _tried(act, call)
            if retry_after is not None and prepared.is_idempotent:
                failed = (result, retry_after)
                result = await _tried_again(act, call, prepared, pause, failed=failed, deadline=deadline)
            return _fitting(result, prepared.defaults.max_result_chars)
    except TimeoutError:
        return ToolResult.failed(call, ErrorType.timeout, f"no answer within {seconds:g} seconds")
    except asyncio.CancelledError:
        if _is_being_cancelled():
            raise
        return ToolResult.failed(call, ErrorType.execution, "the tool gave up its own work (it was cancelled inside)")


async def _tried_again(
    act: Act,
    call: ToolCall,
    prepared: PreparedTool,
    pause: Pause,
    *,
    failed: tuple[ToolResult, float | None],
    deadline: asyncio.Timeout,
) -> ToolResult:
    """Try again while the failure may pass, and tries and time are left."""
    result, retry_after = failed
    backoff_seconds = _FIRST_PAUSE_SECONDS
    for _ in range(prepared.defaults.max_retries):
        if retry_after is None:
            break
        pause_seconds = max(backoff_seconds, retry_after)
        if not _has_room(deadline, pause_seconds):
            break  # What the backend said is worth more than "no answer within 30 seconds".
        await pause(pause_seconds)
        backoff_seconds = min(2 * backoff_seconds, _LONGEST_PAUSE_SECONDS)
        result, retry_after = await _tried(act, call)
    return result


def _has_room(deadline: asyncio.Timeout, seconds: float) -> bool:
    """Whether a pause of so many seconds ends before the deadline."""
    ends = deadline.when()
    return ends is None or asyncio.get_running_loop().time() + seconds < ends


async def _tried(act: Act, call: ToolCall) -> tuple[ToolResult, float | None]:
    """Return the result, and after how many seconds it may be tried again (at least); None: not at all."""
    try:
        outcome = await act()
    except ToolFailed as failure:
        return ToolResult.failed(call, failure.error_type, failure.message), _retry_after(failure)
    except SessionLost:  # Not the call's failure but the session's: told to whoever owns it.
        raise
    except Exception as error:  # noqa: BLE001 - foreign tool code: whatever it raises is told to the model.
        error_type = _type_of(error)
        return ToolResult.failed(call, error_type, _told(error)), 0 if error_type is ErrorType.network else None
    if isinstance(outcome, ToolResult):
        return outcome, 0 if outcome.error_type is ErrorType.network else None
    try:
        return ToolResult(call.call_id, call.qualified_name, result=as_json(outcome)), None
    except TypeError as error:
        message = f"the tool's result is not JSON: {error}"
        return ToolResult.failed(call, ErrorType.unparseable_result, message), None


def _retry_after(failure: ToolFailed) -> float | None:
    may_pass = failure.error_type is ErrorType.network if failure.may_pass is None else failure.may_pass
    return max(0.0, failure.retry_after_seconds or 0) if may_pass else None


def _fitting(result: ToolResult, max_chars: int | None) -> ToolResult:
    """Keep result and error within `max_result_chars`."""
    if max_chars is None:
        return result
    text, left_out = shortened(result.result, max_chars)
    error = None if result.error is None else cut(result.error, max_chars)
    if not left_out and error == result.error:
        return result
    metadata = {**result.metadata, **left_out}
    return ToolResult(result.call_id, result.name, text, error, result.error_type, metadata)


def _type_of(error: Exception) -> ErrorType:
    """Sort what a tool raised into the categories of rule E12."""
    match error:
        case TimeoutError():
            return ErrorType.timeout
        case PermissionError():
            return ErrorType.permission
        case ConnectionError() | socket.gaierror():
            return ErrorType.network
        case _:
            return ErrorType.execution


def _told(error: Exception) -> str:
    """`ValueError: what it says`; the class alone when it says nothing."""
    name, text = type(error).__name__, str(error)
    return cut(f"{name}: {text}" if text else name, _ERROR_CHARS)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
