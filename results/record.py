"""The outcome of a job as it is stored for its users: one line of JSON with exactly these fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

from results.entries import STATUSES, Entry
from results.errors import RecordInvalid

__all__ = [
    "STATUSES",
    "ErrorModel",
    "Record",
    "RecordModel",
    "ToolResultModel",
    "UsageModel",
    "encode_record",
    "entry_of",
]

JSONObject = dict[str, Any]
Encoded = bytes  # one JSON value as orjson wrote it, spliced into the line as it is


@dataclass(slots=True, kw_only=True)
class Record:
    """The fields of a record; messages, tools and tool results may be JSON values or already encoded ones."""

    run_id: str
    job_id: str
    index: int
    attempt: int
    status: str
    messages: Sequence[JSONObject | Encoded]
    tools: Sequence[JSONObject | Encoded] | Encoded = ()
    tool_results: Sequence[JSONObject | Encoded] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    model: str | None = None
    error: Mapping[str, Any] | None = None
    seed: int | None = None
    started_at: str | None = None
    finished_at: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def encode_record(record: Record) -> bytes:
    """Return the record as one line with its newline; RecordInvalid when a value is not JSON."""
    fields = {
        "run_id": record.run_id,
        "job_id": record.job_id,
        "index": record.index,
        "attempt": record.attempt,
        "status": record.status,
        "messages": _spliced(record.messages),
        "tools": _spliced(record.tools),
        "tool_results": _spliced(record.tool_results),
        "usage": {
            "input_tokens": record.input_tokens,
            "output_tokens": record.output_tokens,
            "model_calls": record.model_calls,
            "tool_calls": record.tool_calls,
        },
        "model": record.model,
        "error": None if record.error is None else dict(record.error),
        "seed": record.seed,
        "started_at": record.started_at,
        "finished_at": record.finished_at,
        "metadata": dict(record.metadata),
    }
    try:
        line = orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError as error:  # orjson's errors are TypeErrors: a foreign type, a lone surrogate, a huge integer
        raise RecordInvalid(
            f"record of job {record.job_id}: {error}; tool results and metadata must be JSON"
        ) from error
    if line.count(b"\n") != 1:
        raise RecordInvalid(
            f"record of job {record.job_id}: an encoded part holds a newline; encode it without indents"
        )
    return line


def entry_of(record: Record) -> Entry:
    """Return the record's row for the shard's trailing frame."""
    return Entry(
        index=record.index,
        attempt=record.attempt,
        status=record.status,
        input_tokens=record.input_tokens,
        output_tokens=record.output_tokens,
        model_calls=record.model_calls,
        tool_calls=record.tool_calls,
    )


def _spliced(values: Sequence[JSONObject | Encoded] | Encoded) -> Any:
    if isinstance(values, bytes):
        return orjson.Fragment(values)
    return [orjson.Fragment(value) if isinstance(value, bytes) else value for value in values]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class UsageModel(_Frozen):
    """What one job consumed."""

    input_tokens: int = Field(ge=0)
    output_tokens: int = Field(ge=0)
    model_calls: int = Field(ge=0)
    tool_calls: int = Field(ge=0)


class ErrorModel(_Frozen):
    """Why a job did not end in `ok`."""

    type: str
    message: str


class ToolResultModel(_Frozen):
    """What one tool call gave, as the engine gave it: `name` is `namespace::tool`."""

    call_id: str | None
    name: str
    result: Any = None
    error: str | None = None
    error_type: str | None = None
    metadata: JSONObject = Field(default_factory=dict)


class RecordModel(_Frozen):
    """A stored record, checked: for readers that want types instead of JSON."""

    run_id: str
    job_id: str
    index: int = Field(ge=0)
    attempt: int = Field(ge=0)
    status: Literal["ok", "failed", "cancelled", "dead"]
    messages: tuple[JSONObject, ...]
    tools: tuple[JSONObject, ...]
    tool_results: tuple[ToolResultModel, ...]
    usage: UsageModel
    model: str | None
    error: ErrorModel | None
    seed: int | None
    started_at: str | None
    finished_at: str | None
    metadata: JSONObject
