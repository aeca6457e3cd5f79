"""The `a2a` engine: a call is a message to an agent, and its answer is the result."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Self

from engines.a2a.settings import SKILL, URL, A2ASettings
from engines.checked import checked
from engines.engine import ToolEngine
from engines.errors import ConfigurationInvalid, ToolFailed
from engines.kind_settings import EngineParts
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall
from engines.toolset import Toolset

if TYPE_CHECKING:
    from engines.a2a.agent import Agent

NEEDS = "agents that speak A2A need the a2a extra: pip install 'parley[a2a]'"
_CONTEXT, _TASK = "context_id", "task_id"


class A2AToolEngine(ToolEngine):
    """`agents` are those of the tools, by URL; `only` is the one that answers all of them, where the recipe says so.

    In the namespaces of `own` the agent remembers the conversation: the scratch holds `{url: {context_id, task_id?}}`,
    so that another attempt goes on in the same context. An agent's task that asks for more is told so by the next call.
    """

    def __init__(
        self,
        toolsets: Sequence[Toolset],
        agents: "Mapping[str, Agent]",
        *,
        own: Collection[str],
        only: str | None = None,
        **contract: Any,
    ) -> None:
        self._own = frozenset(own)
        super().__init__(toolsets, **contract)
        self._agents = agents
        self._only = only

    @classmethod
    def from_parts(cls, parts: EngineParts) -> Self:
        """Find out which agents are meant; nothing is contacted yet."""
        settings = checked(A2ASettings, parts.settings, at=parts.at)
        try:
            # The SDK takes a second to import, and most recipes need none of it.
            from engines.a2a.agent import Agent  # noqa: PLC0415
        except ImportError as error:
            raise ConfigurationInvalid(NEEDS, at=(*parts.at, "type")) from error
        urls = {tool.metadata[URL] for toolset in parts.toolsets for tool in toolset.tools if URL in tool.metadata}
        own = [
            toolset.namespace
            for toolset in parts.toolsets
            if (settings.context or ("per_conversation" if toolset.stateful else "per_call")) == "per_conversation"
        ]
        return cls(
            parts.toolsets,
            {url: Agent(url, settings) for url in ([settings.url] if settings.url else sorted(urls))},
            own=own,
            only=settings.url,
            **parts.contract(settings),
        )

    async def close(self) -> None:
        """Close every agent's connections, also after one that raises."""
        async with AsyncExitStack() as closing:
            for agent in self._agents.values():
                closing.push_async_callback(agent.close)

    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> Any:
        from engines.a2a.messages import message_of  # noqa: PLC0415 (as above)

        if SKILL not in tool.metadata:
            problem = f"tool {tool.qualified_name!r} names no skill of an agent; load it by an entry of `type: a2a`"
            raise ToolFailed(ErrorType.execution, problem)
        agent = self._agents[self._only or tool.metadata[URL]]
        remembers = tool.namespace in self._own
        kept = session.scratch.get(agent.url, {}) if remembers else {}
        message = message_of(
            call.arguments,
            skill=tool.metadata[SKILL],
            message_id=str(uuid.uuid4()),
            context_id=kept.get(_CONTEXT, ""),
            task_id=kept.get(_TASK, ""),
        )
        told = await agent.ask(message, tool)
        if remembers and told.context_id:
            session.scratch[agent.url] = {_CONTEXT: told.context_id} | ({_TASK: told.task_id} if told.task_id else {})
        return told.result

    def _depends_on_session(self, tool: Tool, toolset: Toolset) -> bool:
        """A context is there for what was said before."""
        return toolset.namespace in self._own
