"""One call carried out."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engines.calling.attempt import attempted, paused
from engines.calling.prepared import PreparedTool
from engines.errors import SessionLost, ToolFailed
from engines.tool import ErrorType, Tool, ToolCall, ToolResult
from engines.toolset import ToolDefaults, Toolset

CALL = ToolCall("a", "w", {}, "c")


def prepared(metadata: dict[str, Any] | None = None, **defaults: Any) -> PreparedTool:
    tool = Tool("a", "w", metadata=metadata or {})
    return PreparedTool.of(tool, Toolset("w", None, (tool,), ToolDefaults(**defaults)))


class Pauses:
    """Keeps the pauses in place of taking them."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def one_after_the_other(*outcomes: Any) -> Callable[[], Any]:
    waiting: Iterator[Any] = iter(outcomes)

    async def act() -> Any:
        outcome = next(waiting)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return act


@pytest.mark.parametrize(
    ("raised", "error_type", "told"),
    [
        (ToolFailed(ErrorType.schema_violation, "as said"), ErrorType.schema_violation, "as said"),
        (ValueError("bad city"), ErrorType.execution, "ValueError: bad city"),
        (KeyError("x"), ErrorType.execution, "KeyError: 'x'"),
        (RuntimeError(), ErrorType.execution, "RuntimeError"),
        (TimeoutError("slow"), ErrorType.timeout, "TimeoutError: slow"),
        (PermissionError("not yours"), ErrorType.permission, "PermissionError: not yours"),
        (ConnectionResetError("gone"), ErrorType.network, "ConnectionResetError: gone"),
        (socket.gaierror("who?"), ErrorType.network, "gaierror: who?"),
        (FileNotFoundError("no file"), ErrorType.execution, "FileNotFoundError: no file"),
    ],
)
async def test_e12_what_a_tool_raises_becomes_an_error_of_its_category(
    raised: Exception, error_type: ErrorType, told: str
) -> None:
    result = await attempted(one_after_the_other(raised), CALL, prepared(), Pauses())
    assert result == ToolResult("c", "w::a", None, told, error_type)


async def test_a_very_long_error_is_cut() -> None:
    result = await attempted(one_after_the_other(ValueError("x" * 10**6)), CALL, prepared(), Pauses())
    assert result.error is not None
    assert len(result.error) <= 10_000


async def test_a_result_that_is_no_json_is_an_error() -> None:
    result = await attempted(one_after_the_other(object()), CALL, prepared(), Pauses())
    assert result.error_type is ErrorType.unparseable_result
    assert result.error == "the tool's result is not JSON: object has no JSON form"


async def test_a_result_is_its_own_copy() -> None:
    kept = {"list": [1]}
    result = await attempted(one_after_the_other(kept), CALL, prepared(), Pauses())
    kept["list"].append(2)
    assert result.result == {"list": [1]}


async def test_d59_a_transport_error_of_an_idempotent_tool_is_tried_again_with_growing_pauses() -> None:
    pauses = Pauses()
    act = one_after_the_other(ConnectionError("1"), ToolFailed(ErrorType.network, "2"), "there")
    result = await attempted(act, CALL, prepared({"idempotent": True}, max_retries=2), pauses)
    assert result.result == "there"
    assert pauses.seconds == [0.1, 0.2]


async def test_d59_after_its_retries_the_error_stands() -> None:
    act = one_after_the_other(ConnectionError("1"), ConnectionError("2"), "never asked")
    result = await attempted(act, CALL, prepared({"idempotent": True}, max_retries=1), Pauses())
    assert result.error == "ConnectionError: 2"


@pytest.mark.parametrize(("metadata", "error"), [({}, ConnectionError("1")), ({"idempotent": True}, ValueError("1"))])
async def test_d59_other_tools_and_other_errors_are_never_tried_again(
    metadata: dict[str, Any], error: Exception
) -> None:
    pauses = Pauses()
    result = await attempted(one_after_the_other(error, "again"), CALL, prepared(metadata, max_retries=5), pauses)
    assert result.is_error
    assert pauses.seconds == []


async def test_the_deadline_holds_for_all_tries_together() -> None:
    async def for_ever(_seconds: float) -> None:
        await asyncio.Event().wait()

    tool = prepared({"idempotent": True}, max_retries=5, timeout_seconds=0.2)
    result = await attempted(one_after_the_other(ConnectionError("1")), CALL, tool, for_ever)
    assert (result.error_type, result.error) == (ErrorType.timeout, "no answer within 0.2 seconds")


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (ToolFailed(ErrorType.network, "HTTP 429", retry_after_seconds=31), "HTTP 429"),
        (ToolFailed(ErrorType.network, "HTTP 503", retry_after_seconds=float("inf")), "HTTP 503"),
    ],
)
async def test_d59_a_pause_past_the_deadline_is_not_begun_and_the_error_is_told(
    failure: ToolFailed, error: str
) -> None:
    pauses = Pauses()
    tool = prepared({"idempotent": True}, max_retries=5, timeout_seconds=30)
    result = await attempted(one_after_the_other(failure), CALL, tool, pauses)
    assert (result.error, pauses.seconds) == (error, [])


async def test_d59_a_backend_that_says_when_is_left_alone_until_then() -> None:
    pauses = Pauses()
    act = one_after_the_other(
        ToolFailed(ErrorType.network, "429", retry_after_seconds=7),
        ToolFailed(ErrorType.network, "429", retry_after_seconds=0.01),
        ToolFailed(ErrorType.network, "429", retry_after_seconds=-5),
        "there",
    )
    result = await attempted(act, CALL, prepared({"idempotent": True}, max_retries=3), pauses)
    assert result.result == "there"
    assert pauses.seconds == [7, 0.2, 0.4]


@pytest.mark.parametrize(
    ("failure", "tries"),
    [
        (ToolFailed(ErrorType.execution, "500", may_pass=True), 2),
        (ToolFailed(ErrorType.network, "refused for good", may_pass=False), 1),
        (ToolFailed(ErrorType.execution, "400", retry_after_seconds=1), 1),
    ],
)
async def test_d59_whether_a_failure_may_pass_can_be_said(failure: ToolFailed, tries: int) -> None:
    pauses = Pauses()
    result = await attempted(
        one_after_the_other(failure, "there"), CALL, prepared({"idempotent": True}, max_retries=3), pauses
    )
    assert (result.is_error, len(pauses.seconds)) == (tries == 1, tries - 1)


async def test_d59_an_error_result_of_the_transport_is_tried_again_too() -> None:
    failed = ToolResult.failed(CALL, ErrorType.network, "gone")
    tool = prepared({"idempotent": True}, max_retries=1)
    assert (await attempted(one_after_the_other(failed, "there"), CALL, tool, Pauses())).result == "there"


async def test_a_lost_session_is_not_the_calls_failure() -> None:
    with pytest.raises(SessionLost, match="'s' on the backend of 'w' is lost: 404"):
        await attempted(one_after_the_other(SessionLost("w", "s", "404")), CALL, prepared(), Pauses())


async def test_a_pause_lasts_at_least_as_long_as_it_should_and_not_always_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    for _ in range(50):
        await paused(2)
    assert min(slept) >= 2
    assert max(slept) <= 2.5
    assert len(set(slept)) > 1


async def test_e11_a_call_past_its_deadline_is_cancelled() -> None:
    cancelled = asyncio.Event()

    async def act() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    assert (await attempted(act, CALL, prepared(timeout_seconds=0.01), Pauses())).error_type is ErrorType.timeout
    assert cancelled.is_set()


async def test_a_tool_that_cancels_itself_does_not_cancel_the_job() -> None:
    result = await attempted(one_after_the_other(asyncio.CancelledError()), CALL, prepared(), Pauses())
    assert result.error_type is ErrorType.execution


async def test_a_cancelled_job_is_never_taken_for_a_failed_tool() -> None:
    started = asyncio.Event()

    async def act() -> None:
        started.set()
        await asyncio.Event().wait()

    job = asyncio.create_task(attempted(act, CALL, prepared(), Pauses()))
    await started.wait()
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job


async def test_an_error_over_max_result_chars_is_cut_too() -> None:
    result = await attempted(one_after_the_other(ValueError("x" * 99)), CALL, prepared(max_result_chars=20), Pauses())
    assert result.error is not None
    assert len(result.error) == 20


async def test_u17_a_result_says_how_often_the_tool_was_asked_how_long_that_took_and_by_whom() -> None:
    tool = Tool("a", "w", metadata={"idempotent": True})
    made = PreparedTool.of(tool, Toolset("w", "hr_live", (tool,), ToolDefaults(max_retries=3)))
    act = one_after_the_other(ConnectionResetError("gone"), ConnectionResetError("gone"), {"it": "works"})
    result = await attempted(act, CALL, made, Pauses())
    seconds = result.debug.pop("seconds")
    assert result.debug == {"attempts": 3, "engine": "hr_live"}
    assert 0 <= seconds < 60


async def test_u17_a_failure_says_so_too() -> None:
    result = await attempted(one_after_the_other(ValueError("no")), CALL, prepared(), Pauses())
    assert (result.debug["attempts"], result.debug["engine"]) == (1, None)


async def test_u17_debug_data_is_no_part_of_what_a_result_is() -> None:
    first = await attempted(one_after_the_other(1), CALL, prepared(), Pauses())
    second = ToolResult("c", "w::a", 1)
    assert first == second
    assert first.to_dict() == second.to_dict() == {"id": "c", "name": "w::a", "result": 1}
    entry = {"call_id": "c", "name": "w::a", "result": 1, "metadata": {"kept": True, "debug": {"seconds": 1}}}
    read = ToolResult.from_dict(entry)
    assert (read.metadata, read.debug) == ({"kept": True}, {"seconds": 1})
