"""What a conversation does next: a pure function of its state (no I/O, clock or chance)."""

from dataclasses import dataclass

from conversations.history import OpenCalls, first_open_calls
from conversations.messages import JSONObject, Message
from conversations.policy.conflict import TOOK_CONTROL
from conversations.policy.limits import Limits
from conversations.state import AWAITING_TOOL_RESULTS, COMPLETED, ERROR, State
from engines.tool import ErrorType

CUT_OFF = "length"
PAUSED_BY_MODEL = "pause_turn"
REFUSALS = frozenset({"refusal", "content_filter"})


@dataclass(frozen=True, slots=True)
class AskModel:
    """Send the history to the model; a forced tool choice holds for the first request only (rule U6)."""

    with_tools: bool = True
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class AskUser:
    """Let the simulated user speak."""


@dataclass(frozen=True, slots=True)
class RunCalls:
    """Run these calls and answer them."""

    batch: OpenCalls


@dataclass(frozen=True, slots=True)
class RefuseCalls:
    """Answer these calls without running them."""

    batch: OpenCalls
    error_type: ErrorType
    reason: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for the answers to these calls, which come from outside."""

    pending: OpenCalls


@dataclass(frozen=True, slots=True)
class Finish:
    """End with this status."""

    status: str
    error: JSONObject | None = None


Step = AskModel | AskUser | RunCalls | RefuseCalls | Pause | Finish


def next_step(state: State, limits: Limits, *, is_out_of_time: bool = False) -> Step:
    """The step after `state`."""
    if state.status is not None and state.status != AWAITING_TOOL_RESULTS:
        return Finish(state.status, state.error)
    batch = first_open_calls(state.messages, state.settled)
    if batch is not None:
        return _out_of_time(batch, limits) if is_out_of_time else _answer(batch, state, limits)
    if (ended := _ended_by_model(state)) is not None:
        goes_on = ended.status == COMPLETED and not is_out_of_time and _exhausted(state, limits) is None
        return AskUser() if goes_on and limits.user is not None and limits.user.speaks_again(state.user) else ended
    if limits.user is not None and limits.user.opens and not any(each.get("role") == "user" for each in state.messages):
        return AskUser()
    if is_out_of_time:
        return Finish(ERROR, failure("budget", f"more than {limits.max_seconds} seconds (limits.max_seconds)"))
    if (error := _exhausted(state, limits)) is not None:
        return Finish(ERROR, error)
    is_last_of_several = state.turns == limits.max_turns - 1 and limits.max_turns > 1
    return AskModel(with_tools=not (is_last_of_several and limits.on_max_turns == "answer"), is_first=state.turns == 0)


def failure(type_: str, message: str) -> JSONObject:
    """A conversation's `error`."""
    return {"type": type_, "message": message}


def _answer(batch: OpenCalls, state: State, limits: Limits) -> Step:
    if state.finish_reason in REFUSALS:
        return RefuseCalls(batch, ErrorType.permission, "Not run: the model withheld the reply that made this call.")
    if state.finish_reason == CUT_OFF:
        return RefuseCalls(batch, ErrorType.limit, "Not run: the reply that made this call was cut off (token limit).")
    if state.turns >= limits.max_turns:
        reason = f"Not run: the conversation has used all of its {limits.max_turns} turns."
        return RefuseCalls(batch, ErrorType.limit, reason)
    if not state.pending:
        return RunCalls(batch)
    ours = tuple(call_id for call_id in batch.call_ids if call_id not in state.pending)
    return RunCalls(OpenCalls(batch.index, ours)) if ours else Pause(batch)


def _out_of_time(batch: OpenCalls, limits: Limits) -> RefuseCalls:
    reason = f"Not run to its end: the conversation has used all of its {limits.max_seconds} seconds."
    return RefuseCalls(batch, ErrorType.timeout, reason)


def _ended_by_model(state: State) -> Finish | None:
    """Whether the model's last reply was its last word."""
    if state.finish_reason in REFUSALS:
        return Finish(ERROR, failure(str(state.finish_reason), "the model refused; change the prompt or the model"))
    last = state.messages[-1] if state.messages else {}
    if state.finish_reason == CUT_OFF:
        kind = "truncated_reply" if last.get("role") == "assistant" else "truncated_tool_call"
        return Finish(ERROR, failure(kind, "the model's reply was cut off at its token limit; raise model.max_tokens"))
    if last.get("role") == "assistant" and state.finish_reason != PAUSED_BY_MODEL:
        return Finish(COMPLETED)
    return Finish(COMPLETED) if _was_taken_over(last, state) else None


def _was_taken_over(last: Message, state: State) -> bool:
    """Whether the last message is the answer of a tool that took control (rule U12)."""
    if last.get("role") != "tool" or not state.tool_results:
        return False
    entry = state.tool_results[-1]
    return TOOK_CONTROL in entry["metadata"] and entry["call_id"] == last.get("tool_call_id")


def _exhausted(state: State, limits: Limits) -> JSONObject | None:
    """The limit that forbids another model call."""
    if state.turns >= limits.max_turns:
        return failure("max_turns", f"no final answer after {limits.max_turns} turns; raise conversation.max_turns")
    tokens = state.all_tokens
    if limits.max_total_tokens is not None and tokens >= limits.max_total_tokens:
        return failure("budget", f"{tokens} tokens used of {limits.max_total_tokens} (limits.max_total_tokens)")
    if limits.max_total_tool_calls is not None and state.tool_calls > limits.max_total_tool_calls:
        return failure("budget", f"more than {limits.max_total_tool_calls} tool calls (limits.max_total_tool_calls)")
    return None
