"""An agent on the SDK's own A2A server, in the test's loop: it answers by what the message says."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from a2a.helpers import get_data_parts, new_data_message, new_text_artifact, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Role,
    SendMessageRequest,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send


@dataclass
class Agency(AgentExecutor):
    """What the agent was asked, and how it answers: `echo …`, `data`, `task …`, `fail …`, `ask …`, `wait`."""

    heard: list[tuple[str, str, str]] = field(default_factory=list)
    """(text, context id, task id) of each message."""
    metadata: list[dict[str, Any]] = field(default_factory=list)
    data: list[Any] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    began: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    cards_read: int = 0
    secret: str | None = None
    card: AgentCard = field(default_factory=AgentCard)
    url: str = ""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        said = context.get_user_input()
        known = context.current_task
        self.heard.append((said, context.context_id or "", known.id if known else ""))
        self.metadata.append(dict(context.message.metadata) if context.message else {})
        self.data += get_data_parts(context.message.parts) if context.message else []
        word, _, rest = said.partition(" ")
        names = {"context_id": context.context_id or "", "task_id": context.task_id or ""}
        if known is None and word in {"task", "fail", "ask", "wait", "reject"}:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(Task(id=names["task_id"], context_id=names["context_id"], status=status))
        updater = TaskUpdater(event_queue, names["task_id"], names["context_id"])
        reply = new_text_message(rest, role=Role.ROLE_AGENT, **names)
        if known is not None:
            await updater.add_artifact(list(new_text_artifact("answer", f"so it is {said}").parts))
            await updater.complete()
        elif word == "data":
            await event_queue.enqueue_event(
                new_data_message({"rooms": 3, "price": 1.5}, role=Role.ROLE_AGENT, context_id=names["context_id"])
            )
        elif word == "task":
            await updater.start_work()
            await updater.add_artifact(list(new_text_artifact("answer", rest).parts))
            await updater.complete()
        elif word == "fail":
            await updater.failed(reply)
        elif word == "reject":
            await updater.reject(reply)
        elif word == "ask":
            await updater.requires_input(reply)
        elif word == "wait":
            await updater.start_work()
            self.began.set()
            await self.released.wait()
            await updater.add_artifact(list(new_text_artifact("answer", "at last").parts))
            await updater.complete()
        else:
            words = new_text_message(f"echo: {said}", role=Role.ROLE_AGENT, context_id=names["context_id"])
            await event_queue.enqueue_event(words)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.cancelled.set()
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


class Hasty(DefaultRequestHandler):
    """Does not wait for a task's end."""

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Message | Task:
        params.configuration.return_immediately = True
        answer: Message | Task = await super().on_message_send(params, context)
        return answer


@dataclass
class Doorkeeper:
    """Notes who asks, and turns away whoever does not know the secret."""

    app: ASGIApp
    agency: Agency

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        said = Request(scope).headers.get("authorization")
        if scope["method"] == "POST":
            self.agency.authorizations.append(said)
        else:
            self.agency.cards_read += 1
        if self.agency.secret is not None and said != f"Bearer {self.agency.secret}":
            await Response("who are you?", status_code=401)(scope, receive, send)
            return
        await self.app(scope, receive, send)


def skill(name: str, description: str = "Says what it was told.", **more: Any) -> AgentSkill:
    return AgentSkill(id=name, name=name.title(), description=description, tags=["test"], **more)


@asynccontextmanager
async def a2a_server(
    *skills: AgentSkill, secret: str | None = None, answers_at_once: bool = False, version: str = "1.0"
) -> AsyncIterator[Agency]:
    """Serve an agent with these skills on a free port; at once: also while a task is under way."""
    agency = Agency(secret=secret)
    agency.card = AgentCard(
        name="agency",
        description="An agent for tests.",
        version="1",
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        capabilities=AgentCapabilities(streaming=True),
        skills=list(skills or (skill("echo"),)),
    )
    kind = Hasty if answers_at_once else DefaultRequestHandler
    handler = kind(agent_executor=agency, task_store=InMemoryTaskStore(), agent_card=agency.card)
    routes = [*create_agent_card_routes(agency.card), *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True)]
    app = Doorkeeper(Starlette(routes=routes), agency)
    config = uvicorn.Config(app, port=0, log_level="warning", lifespan="off", timeout_graceful_shutdown=1, ws="none")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    agency.url = f"http://127.0.0.1:{port}"
    interface = AgentInterface(protocol_binding="JSONRPC", protocol_version=version, url=f"{agency.url}/rpc")
    agency.card.supported_interfaces.append(interface)
    try:
        yield agency
    finally:
        agency.released.set()
        server.should_exit = True
        await serving
