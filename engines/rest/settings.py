"""What a recipe says of a `rest` engine."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from engines.kind_settings import EngineSettings
from engines.network.connection import ConnectionSettings
from engines.network.headers import header_problem, is_for_configuration_only
from engines.rest.masking import is_secret_header
from engines.rest.session_settings import SessionSettings
from engines.rest.supplied import Reserved


class IdempotencyKey(BaseModel):
    """Requests that change something carry a key, the same in every try of a call, so that these may be tried again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    header: str = "Idempotency-Key"

    @field_validator("header")
    @classmethod
    def _is_a_header(cls, header: str) -> str:
        if problem := header_problem(header, ""):
            raise ValueError(problem)
        if is_for_configuration_only(header):
            raise ValueError(f"{header} says who is asking; take a header of its own")
        return header


class RestSettings(EngineSettings, ConnectionSettings):
    """Where the API is, as whom it is asked, and how conversations get sessions of their own (rules D47, D56).

    Without `url`, each tool's own base URL holds: then nothing here may say who is asking.
    """

    namespaces: tuple[str, ...] | None = None
    sessions: dict[str, SessionSettings] = Field(default_factory=dict)
    idempotency_key: IdempotencyKey | None = None
    max_connections: int = Field(default=256, ge=1, le=4096)

    @model_validator(mode="after")
    def _credentials_have_an_origin(self) -> Self:
        if self.url is not None and "?" in self.url:
            raise ValueError("url must have no ?query; give a key by api_key with location: query")
        if self.url is None and self.has_credentials:
            raise ValueError("credentials belong to one server (and headers may be some); say its url")
        if self.url is None and self.sessions:
            raise ValueError("sessions begin on one server; say its url")
        return self

    @model_validator(mode="after")
    def _headers_are_given_once(self) -> Self:
        own = {name.lower() for name, _ in self.credential_headers}
        if self.idempotency_key is not None and self.idempotency_key.header.lower() in own:
            raise ValueError(f"headers give {self.idempotency_key.header} too, the same for every call; leave it out")
        for namespace, session in self.sessions.items():
            for name in session.header_names:
                if name.lower() in own:
                    message = f"sessions.{namespace} gives the header {name}, and so do the engine's own keys"
                    raise ValueError(f"{message}; give it in one place")
        return self

    @property
    def masked(self) -> tuple[str, ...]:
        """The secrets that no answer may bring into a conversation; a header is none unless its name says so."""
        headers = [value.get_secret_value() for name, value in self.headers.items() if is_secret_header(name)]
        for session in self.sessions.values():
            for request in (session.setup, session.teardown):
                secrets = request.headers.items() if request is not None else ()
                headers += [value.get_secret_value() for name, value in secrets if is_secret_header(name)]
        credentials = self.model_copy(update={"headers": {}})
        return (*headers, *credentials.secrets, *(value for _, value in credentials.credential_headers))

    def reserved_in(self, namespace: str) -> Reserved:
        """Return the names that no argument of a call may fill: those that the configuration fills itself."""
        headers = {name.lower() for name, _ in self.credential_headers}
        query: set[str] = set()
        cookies: set[str] = set()
        if self.idempotency_key is not None:
            headers.add(self.idempotency_key.header.lower())
        if self.api_key is not None and self.api_key.location == "query":
            query.add(self.api_key.name)
        if session := self.sessions.get(namespace):
            headers.update(name.lower() for name in session.send.header)
            query.update(session.send.query)
            cookies.update(session.send.cookie)
        return Reserved(frozenset(headers), frozenset(query), frozenset(cookies))
