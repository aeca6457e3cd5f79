"""One call carried out: its deadline, its retries, and whatever goes wrong turned into a result."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from engines.errors import SessionLost, ToolFailed
from engines.plain import as_json
from engines.prepared import PreparedTool
from engines.shortening import cut, shortened
from engines.tool import ErrorType, ToolCall, ToolResult

Act = Callable[[], Awaitable[Any]]
Pause = Callable[[float], Awaitable[None]]

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_ERROR_CHARS = 10_000


async def attempted(act: Act, call: ToolCall, prepared: PreparedTool, pause: Pause) -> ToolResult:
    """Run `act` within the tool's deadline, retries included (decision 10); only the job's cancellation is raised."""
    seconds = prepared.defaults.timeout_seconds
    try:
        async with asyncio.timeout(seconds):
            return _fitting(await _tried(act, call, prepared, pause), prepared.defaults.max_result_chars)
    except TimeoutError:
        return ToolResult.failed(call, ErrorType.timeout, f"no answer within {seconds:g} seconds")
    except asyncio.CancelledError:
        if _is_being_cancelled():
            raise
        return ToolResult.failed(call, ErrorType.execution, "the tool gave up its own work (it was cancelled inside)")


async def _tried(act: Act, call: ToolCall, prepared: PreparedTool, pause: Pause) -> ToolResult:
    """Try, and try again while the transport failed, the tool is idempotent and retries are left."""
    retries_left = prepared.defaults.max_retries if prepared.is_idempotent else 0
    pause_seconds = _FIRST_PAUSE_SECONDS
    while True:
        result = await _tried_once(act, call)
        if result.error_type is not ErrorType.network or retries_left == 0:
            return result
        retries_left -= 1
        await pause(pause_seconds)
        pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)


async def _tried_once(act: Act, call: ToolCall) -> ToolResult:
    try:
        outcome = await act()
    except ToolFailed as failure:
        return ToolResult.failed(call, failure.error_type, failure.message)
    except SessionLost:  # Not the call's failure but the session's: told to whoever owns it.
        raise
    except Exception as error:  # noqa: BLE001 - foreign tool code: whatever it raises is told to the model.
        return ToolResult.failed(call, _type_of(error), _told(error))
    if isinstance(outcome, ToolResult):
        return outcome
    try:
        return ToolResult(call.call_id, call.qualified_name, result=as_json(outcome))
    except TypeError as error:
        return ToolResult.failed(call, ErrorType.unparseable_result, f"the tool's result is not JSON: {error}")


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
