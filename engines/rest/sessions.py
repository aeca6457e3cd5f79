"""A namespace's sessions on its backend, as requests: how one begins, what its calls carry, how it ends. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from engines.errors import InvalidTool, ToolFailed
from engines.network.answers import Answer
from engines.plain import JSONObject
from engines.rest.bodies import json_text
from engines.rest.captures import captured
from engines.rest.content import value_of
from engines.rest.header_rules import checked_header
from engines.rest.operation import RestRequest
from engines.rest.path import PathTemplate
from engines.rest.session_settings import SESSION_ID, SessionRequest, SessionSettings
from engines.rest.styles import encoded, scalar
from engines.rest.supplied import Supplied
from engines.rest.templates import as_path_template, filled, filled_text
from engines.tool import ErrorType

_GONE = frozenset({404, 410})


@dataclass(frozen=True, slots=True)
class Prepared:
    """One request of a session, its template read."""

    settings: SessionRequest
    path: PathTemplate

    @classmethod
    def of(cls, settings: SessionRequest, base_path: str) -> Self:
        """Read the path; ValueError when it leaves the base path."""
        try:
            return cls(settings, PathTemplate.of(as_path_template(settings.path), prefix=base_path))
        except InvalidTool as error:
            raise ValueError(str(error)) from error

    def request(self, values: Mapping[str, Any]) -> RestRequest:
        """Return the request with the values in it; ToolFailed for one that cannot stand where it is put."""
        settings = self.settings
        target = self.path.filled({name: encoded(scalar(values[name])) for name in self.path.names})
        query = [f"{encoded(name)}={encoded(filled_text(text, values))}" for name, text in settings.query.items()]
        if query:
            target = f"{target}?{'&'.join(query)}"
        headers = {"accept": "application/json"}
        for name, secret in settings.headers.items():
            headers[name.lower()] = checked_header(name, filled_text(secret.get_secret_value(), values))
        if settings.body is None:
            return RestRequest(settings.method, target, headers)
        headers.setdefault("content-type", "application/json")
        return RestRequest(settings.method, target, headers, json_text(filled(settings.body, values)).encode())


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions of one namespace. A handle is what is kept of one: `{"session_id": …, <captured>: …}`."""

    namespace: str
    settings: SessionSettings
    setup: Prepared | None
    teardown: Prepared | None

    @classmethod
    def of(cls, namespace: str, settings: SessionSettings, base_path: str) -> Self:
        """Read the templates; ValueError when one cannot be used."""
        return cls(
            namespace,
            settings,
            None if settings.setup is None else Prepared.of(settings.setup, base_path),
            None if settings.teardown is None else Prepared.of(settings.teardown, base_path),
        )

    def handle(self, session_id: str, answer: Answer | None) -> JSONObject:
        """Return the handle of a session that the backend has just made; ToolFailed when the answer lacks a part."""
        handle: JSONObject = {SESSION_ID: session_id}
        if self.settings.setup is None or answer is None or not self.settings.setup.capture:
            return handle
        value = value_of(answer.body, answer.headers.get("content-type", ""))
        for name, source in self.settings.setup.capture.items():
            try:
                handle[name] = captured(source, value, answer.headers)
            except LookupError as error:
                message = f"the session of {self.namespace!r} has no {name!r}: {error.args[0]}"
                raise ToolFailed(ErrorType.unparseable_result, message) from error
        return handle

    def supplied(self, handle: Mapping[str, Any]) -> Supplied:
        """Return what goes with every call of the session."""
        send = self.settings.send
        return Supplied(
            headers={name.lower(): filled_text(text, handle) for name, text in send.header.items()},
            query={name: filled_text(text, handle) for name, text in send.query.items()},
            path={name: filled_text(text, handle) for name, text in send.path.items()},
            cookies={name: filled_text(text, handle) for name, text in send.cookie.items()},
            body=filled(send.body, handle),
        )

    def can_end(self, handle: Mapping[str, Any]) -> bool:
        """Whether the handle has all that the teardown needs; one that a process took with it may need no more."""
        return self.teardown is not None and self.teardown.settings.names <= handle.keys()

    def has_ended(self, answer: Answer) -> bool:
        """Whether a teardown was answered so that nothing is left: done, or nothing there (any more)."""
        return self.teardown is not None and (
            answer.status in _GONE or self.teardown.settings.is_success(answer.status)
        )
