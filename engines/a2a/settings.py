"""The keys that say which agent is meant and how a conversation stands to it."""

from typing import Literal, Self

from pydantic import model_validator

from engines.kind_settings import EngineSettings
from engines.network.connection import ConnectionSettings

ANSWER_SECONDS = 600.0
"""Agents think for longer than functions run."""

URL, SKILL, DIGEST = "a2a_url", "a2a_skill", "a2a_digest"
"""Metadata keys of a tool: its agent, its skill's id, and what the skill was when it was loaded."""


class A2ASettings(EngineSettings, ConnectionSettings):
    """The engine's keys; without `url` each tool's own agent is asked, at public addresses only.

    With `context: per_conversation` the agent remembers the calls before; it is so for namespaces that are stateful,
    and `per_call` for the others, unless it is said here. `timeout` bounds each request (600 seconds unless said).
    """

    context: Literal["per_conversation", "per_call"] | None = None

    @model_validator(mode="after")
    def _credentials_have_an_agent(self) -> Self:
        if self.has_credentials and self.url is None:
            raise ValueError("credentials need the `url` of the agent they are for")
        return self
