"""An agent's card read once, for the registry."""

from a2a.types import AgentCard

from engines.a2a.card import fetched_card
from engines.network.connection import ConnectionSettings
from engines.network.http_client import HttpClient
from engines.network.origins import Origin


async def card_of(settings: ConnectionSettings, url: str) -> AgentCard:
    """Connect, read, close; NetworkFailure or CardUnusable say what stands in the way."""
    async with HttpClient(settings, Origin.of(url)) as client:
        return await fetched_card(client, url)
