"""The keys that say which MCP server is meant and how a conversation stands to it."""

from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from engines.kind_settings import EngineSettings
from engines.network.connection import ConnectionSettings

Transport = Literal["http", "sse", "stdio"]


class McpConnection(ConnectionSettings):
    """A server by `url`, or by `command` and `args` for one that is started here and spoken to over stdio.

    `environment` is what a started server knows besides PATH, HOME and LANG. Its values, and those of `headers`, may be
    `env:NAME`: the variable's value where the connection is made.
    """

    transport: Transport | None = None
    command: str | None = Field(default=None, min_length=1)
    args: tuple[str, ...] = ()
    environment: dict[str, SecretStr] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _says_one_server(self) -> Self:
        if self.url is not None and self.command is not None:
            raise ValueError("`url` and `command` name two servers; give one of them")
        if self.command is None and (self.args or self.environment):
            raise ValueError("`args` and `environment` belong to a `command`; give it, or leave them out")
        if self.command is not None and self.transport in {"http", "sse"}:
            raise ValueError(f"a `command` is spoken to over stdio, not {self.transport}; leave `transport` out")
        if self.command is None and self.transport == "stdio":
            raise ValueError("`transport: stdio` needs a `command`")
        if self.command is not None and self.has_credentials:
            raise ValueError("credentials are for a `url`; give a started server its secrets by `environment`")
        for text in (self.command or "", *self.args, *self.environment):
            if "\0" in text:
                raise ValueError("`command`, `args` and `environment` hold no NUL characters")
        for name in self.environment:
            if not name or "=" in name:
                raise ValueError(f"`environment`: {name!r} is no name of a variable")
        return self


class McpSettings(EngineSettings, McpConnection):
    """The engine's keys; without `url` and `command` each tool's own server is asked, at public addresses only.

    `session` is `per_conversation` for namespaces that are stateful and `shared` for the others, unless said here.
    `timeout` bounds connecting and listing (30 seconds unless said), and if said each call besides its own deadline.
    """

    session: Literal["per_conversation", "shared"] | None = None
    max_in_flight: int = Field(default=32, ge=1, le=10_000)
    on_lost_session: Literal["replay", "fail"] = "replay"

    @model_validator(mode="after")
    def _credentials_have_a_server(self) -> Self:
        if self.has_credentials and self.url is None:
            raise ValueError("credentials need the `url` of the server they are for")
        return self
