"""How a conversation gets a state of its own in a stateful backend: the requests before, with and after its calls."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from engines.network.headers import header_problem
from engines.rest.captures import check_source
from engines.rest.templates import check_names, names_in

SESSION_ID = "session_id"

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class SessionRequest(BaseModel):
    """A request of the session itself, under the engine's `url`; `expect` lists the statuses that mean success."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: Method = "POST"
    path: str
    query: dict[str, str] = Field(default_factory=dict)
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    body: Any = Field(default=None, repr=False)
    expect: tuple[int, ...] = ()
    timeout: float | None = Field(default=None, gt=0, le=600)

    @field_validator("method", mode="before")
    @classmethod
    def _any_case(cls, method: Any) -> Any:
        return method.upper() if isinstance(method, str) else method

    @field_validator("expect", mode="before")
    @classmethod
    def _one_is_a_list(cls, expect: Any) -> Any:
        return (expect,) if isinstance(expect, int) else expect

    @field_validator("path")
    @classmethod
    def _starts_at_the_base(cls, path: str) -> str:
        if not path.startswith("/"):
            raise ValueError("must start with /; it is put behind the engine's url")
        return path

    @property
    def templates(self) -> list[Any]:
        """Everything that may hold `{{ name }}`."""
        return [self.path, self.query, _plain(self.headers), self.body]

    @property
    def names(self) -> frozenset[str]:
        """The values that the request needs."""
        return frozenset(names_in(self.templates))

    def is_success(self, status: int) -> bool:
        """Whether the server did what was asked."""
        return status in self.expect if self.expect else 200 <= status < 300  # noqa: PLR2004 - RFC 9110, 15.3


class SetupRequest(SessionRequest):
    """Asked once per conversation, before its first call.

    `capture` keeps parts of the answer by name: a JSON pointer (`/data/id`), `header:NAME` or `cookie:NAME`.
    """

    capture: dict[str, str] = Field(default_factory=dict)

    @field_validator("capture")
    @classmethod
    def _sources_can_be_read(cls, capture: dict[str, str]) -> dict[str, str]:
        for name, source in capture.items():
            if not name.isidentifier() or name == SESSION_ID:
                raise ValueError(f"{name!r} names no value; take letters, digits and _ (not {SESSION_ID})")
            check_source(source)
        return capture


class Send(BaseModel):
    """What goes with every call of the session, by its name on the wire, whatever the call's arguments say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    header: dict[str, str] = Field(default_factory=dict)
    query: dict[str, str] = Field(default_factory=dict)
    path: dict[str, str] = Field(default_factory=dict)
    cookie: dict[str, str] = Field(default_factory=dict)
    body: dict[str, Any] = Field(default_factory=dict)

    @field_validator("header")
    @classmethod
    def _are_headers(cls, header: dict[str, str]) -> dict[str, str]:
        for name in header:
            if problem := header_problem(name, ""):
                raise ValueError(problem)
        return header


class SessionSettings(BaseModel):
    """The sessions of one namespace.

    `resume` says what a conversation does that goes on in another attempt: `replay` its calls that change something
    into a new session, begin a `fresh` one without them, `reuse` the one that is there, or `fail`. A call answered with
    one of `lost_statuses` ends the attempt.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    setup: SetupRequest | None = None
    send: Send = Field(default_factory=Send)
    teardown: SessionRequest | None = None
    resume: Literal["replay", "fresh", "reuse", "fail"] = "replay"
    lost_statuses: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        captured = frozenset(self.setup.capture) if self.setup is not None else frozenset()
        if self.setup is not None:
            check_names(self.setup.templates, {SESSION_ID})
        if self.teardown is not None:
            check_names(self.teardown.templates, captured | {SESSION_ID})
        check_names(list(self.send.model_dump().values()), captured | {SESSION_ID})
        if self.setup is None and self.teardown is None and not any(self.send.model_dump().values()):
            raise ValueError("says nothing; give setup, send or teardown")
        return self

    @property
    def header_names(self) -> list[str]:
        """The headers that any of the requests sets."""
        requests = (each for each in (self.setup, self.teardown) if each is not None)
        return [*self.send.header, *(name for request in requests for name in request.headers)]


def _plain(headers: dict[str, SecretStr]) -> dict[str, str]:
    return {name: value.get_secret_value() for name, value in headers.items()}
