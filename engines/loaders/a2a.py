"""The skills of an agent that speaks A2A: `{type: a2a, url, namespace, engine, skills?, …}`; its card is read once."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pydantic import Field

from engines.a2a.engine import NEEDS
from engines.a2a.settings import ANSWER_SECONDS
from engines.checked import checked
from engines.errors import ConfigurationInvalid, InvalidTool
from engines.loaders.entries import Entry, Surroundings
from engines.network.connection import ConnectionSettings
from engines.network.failures import NetworkFailure
from engines.plain import JSONObject
from engines.tool import Tool
from engines.tool_settings import ENSEMBLE_DEFAULTS

_DEFAULT_NAMESPACE = "agents"


class A2AEntry(Entry, ConnectionSettings):
    """An agent by its `url`, or its card's; `skills` are ids. `timeout` bounds reading the card, in seconds."""

    url: str
    skills: tuple[str, ...] | None = None
    timeout: float | None = Field(default=10.0, gt=0, le=86_400)
    timeout_seconds: float = Field(default=ANSWER_SECONDS, gt=0, allow_inf_nan=False)
    takes_control: bool = False


def load(entry: JSONObject, surroundings: Surroundings) -> list[Tool]:
    """Read the card and make a tool of each skill; ConfigurationInvalid stands at the entry's `url`."""
    checked(A2AEntry, entry, at=surroundings.at)
    settings = checked(A2AEntry, surroundings.resolve(entry, surroundings.at), at=surroundings.at)
    at = (*surroundings.at, "url")
    try:
        # The SDK takes a second to import, and most recipes need none of it.
        from engines.a2a.card import CardUnusable, tools_of  # noqa: PLC0415
        from engines.a2a.loading import card_of  # noqa: PLC0415
    except ImportError as error:
        raise ConfigurationInvalid(NEEDS, at=(*surroundings.at, "type")) from error
    try:
        # In a thread with a loop of its own: whoever loads a recipe may be inside a running loop.
        with ThreadPoolExecutor(1, thread_name_prefix="agent card") as threads:
            card = threads.submit(asyncio.run, card_of(settings, settings.url)).result()
        namespace = settings.namespace or _DEFAULT_NAMESPACE
        tools = tools_of(card, url=settings.url.partition("?")[0], namespace=namespace, skills=settings.skills)
    except (CardUnusable, NetworkFailure) as error:
        raise ConfigurationInvalid(f"cannot read this agent's card: {error}", at=at) from error
    except InvalidTool as error:
        raise ConfigurationInvalid(str(error), at=at) from error
    more: JSONObject = {ENSEMBLE_DEFAULTS: {"timeout_seconds": settings.timeout_seconds}}
    if settings.takes_control:
        more["takes_control"] = True
    return [replace(tool, metadata={**tool.metadata, **more}) for tool in tools]
