"""One agent: its card looked at once, messages sent to it, its tasks followed to their end."""

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError, A2AClientTimeoutError
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    SendMessageRequest,
    Task,
)
from a2a.utils.errors import A2AError
from google.protobuf.json_format import ParseError

from engines.a2a.answers import UNDER_WAY, Told, told_by, told_by_task
from engines.a2a.card import CardUnusable, digest_of, fetched_card
from engines.a2a.settings import ANSWER_SECONDS, DIGEST, SKILL
from engines.a2a.transport import OriginTransport
from engines.calling.attempt import Pause, paused
from engines.errors import ToolFailed
from engines.mcp.text import printable
from engines.network.connection import ConnectionSettings
from engines.network.failures import FailureKind, NetworkFailure
from engines.network.http_client import HttpClient
from engines.network.origins import Origin, OriginInvalid
from engines.tool import ErrorType, Tool

if TYPE_CHECKING:
    from a2a.client import Client

_FIRST_LOOK_SECONDS = 0.5
_LONGEST_LOOK_SECONDS = 5.0
_CANCEL_SECONDS = 2.0
_REASON_CHARS = 500
_NOT_ALLOWED = frozenset({401, 403})
_JSON_RPC = "JSONRPC"


class Agent:
    """The agent at `url`; credentials of `settings` go to it when it is the one that they name, and nowhere else."""

    def __init__(self, url: str, settings: ConnectionSettings, *, pause: Pause = paused) -> None:
        self.url = url
        self._settings = settings
        self._pause = pause
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._client: Client | None = None
        self._card: AgentCard | None = None

    async def close(self) -> None:
        """Close its connections."""
        self._client = None
        await self._stack.aclose()

    async def ask(self, message: Message, tool: Tool) -> Told:
        """Send a message for a skill and wait for what comes of it; ToolFailed says why nothing does."""
        try:
            client = await self._ready()
            self._refuse_changed(tool)
            async for response in client.send_message(SendMessageRequest(message=message)):
                if response.HasField("task") and response.task.status.state in UNDER_WAY:
                    return told_by_task(await self._finished(client, response.task))
                return told_by(response)
            raise ToolFailed(ErrorType.unparseable_result, "the agent answered with nothing")
        except NetworkFailure as failure:
            raise _of_network(failure) from None
        except A2AError as error:
            raise _of_agent(error) from None
        except (ParseError, KeyError, TypeError, ValueError) as error:
            cause = printable(str(error), _REASON_CHARS)
            raise ToolFailed(ErrorType.unparseable_result, f"the agent's answer cannot be read: {cause}") from None

    async def _ready(self) -> "Client":
        """Look at the card and make a client of the way it offers; a failure is tried again by the next call."""
        async with self._lock:
            if self._client is None:
                async with AsyncExitStack() as opened:
                    seconds = self._settings.timeout or ANSWER_SECONDS
                    at_card = await opened.enter_async_context(
                        HttpClient(self._settings, Origin.of(self.url), timeout_seconds=seconds)
                    )
                    try:
                        card = await fetched_card(at_card, self.url)
                    except CardUnusable as error:
                        raise ToolFailed(ErrorType.network, str(error)) from None
                    origin = _offered(card, self.url)
                    # Elsewhere than the card is no place that the operator wrote down: public, and without credentials.
                    at_agent = (
                        at_card
                        if origin == at_card.origin
                        else HttpClient(self._settings, origin, timeout_seconds=seconds)
                    )
                    if at_agent is not at_card:
                        await opened.enter_async_context(at_agent)
                    http = await opened.enter_async_context(httpx.AsyncClient(transport=OriginTransport(at_agent)))
                    self._client = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
                    self._card = card
                    self._stack = opened.pop_all()
            return self._client

    def _refuse_changed(self, tool: Tool) -> None:
        """The skill must be what it was when the tool was loaded (rule S9)."""
        skills = {} if self._card is None else {skill.id: skill for skill in self._card.skills}
        skill = skills.get(tool.metadata.get(SKILL, ""))
        if skill is None or digest_of(skill) != tool.metadata.get(DIGEST):
            how = "is gone" if skill is None else "is not what it was when the run was submitted"
            message = f"the agent's skill {tool.metadata.get(SKILL)!r} {how}; submit the run again"
            raise ToolFailed(ErrorType.permission, message, may_pass=False)

    async def _finished(self, client: "Client", task: Task) -> Task:
        """Look at a task until it ends; when the call is given up, the agent is told so."""
        seconds = _FIRST_LOOK_SECONDS
        try:
            while task.status.state in UNDER_WAY:
                await self._pause(seconds)
                seconds = min(2 * seconds, _LONGEST_LOOK_SECONDS)
                task = await client.get_task(GetTaskRequest(id=task.id))
            return task
        except asyncio.CancelledError:
            with suppress(Exception):
                async with asyncio.timeout(_CANCEL_SECONDS):
                    await client.cancel_task(CancelTaskRequest(id=task.id))
            raise


def _offered(card: AgentCard, url: str) -> Origin:
    """The origin where the card says that the agent speaks JSON-RPC: at one, or nothing would be bound to it."""
    places = {each.url for each in card.supported_interfaces if each.protocol_binding.upper() == _JSON_RPC}
    if not places:
        offered = ", ".join(sorted({each.protocol_binding for each in card.supported_interfaces})) or "nothing"
        raise ToolFailed(ErrorType.network, f"{url}: the agent offers {printable(offered, 200)}, and not JSON-RPC")
    try:
        origins = {Origin.of(place) for place in places}
    except OriginInvalid as error:
        raise ToolFailed(ErrorType.network, f"{url}: the card's interface {error}") from None
    if len(origins) > 1:
        raise ToolFailed(ErrorType.network, f"{url}: the card offers JSON-RPC at several servers")
    return origins.pop()


def _of_network(failure: NetworkFailure) -> ToolFailed:
    if failure.kind is FailureKind.timeout:
        return ToolFailed(ErrorType.timeout, failure.message)
    if failure.kind in {FailureKind.refused_address, FailureKind.refused_request}:
        return ToolFailed(ErrorType.permission, failure.message)
    return ToolFailed(ErrorType.network, failure.message, may_pass=failure.may_pass)


def _of_agent(error: A2AError) -> ToolFailed:
    message = printable(error.message, _REASON_CHARS)
    if isinstance(error, A2AClientTimeoutError):
        return ToolFailed(ErrorType.timeout, message)
    status = error.__cause__.response.status_code if isinstance(error.__cause__, httpx.HTTPStatusError) else None
    if status in _NOT_ALLOWED:
        return ToolFailed(ErrorType.permission, f"the agent refuses us: HTTP {status}")
    if status is not None:
        return ToolFailed(ErrorType.network, f"the agent answered with HTTP {status}")
    if isinstance(error.__cause__, httpx.RequestError):
        return ToolFailed(ErrorType.network, message)
    if isinstance(error, A2AClientError):
        return ToolFailed(ErrorType.unparseable_result, f"the agent's answer cannot be read: {message}")
    return ToolFailed(ErrorType.execution, f"the agent: {message}")
