"""The `recipe` engine: a call is a whole conversation of another recipe, whose last word is the result."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

from engines.chance import derive_seed
from engines.checked import checked
from engines.converse import Brief, Converse, Conversed
from engines.engine import ToolEngine
from engines.errors import ConfigurationInvalid
from engines.kind_settings import EngineParts, EngineSettings
from engines.lm.output import Accepted, Rejected, judged
from engines.lm.prompt import response_format_for
from engines.plain import JSONObject
from engines.recipes.sub_agent import SUB_AGENT, SubAgent, stateful_namespaces
from engines.session import Session
from engines.tool import Tool, ToolCall, ToolResult
from engines.toolset import Toolset

Key = tuple[str, str]


class RecipeSettings(EngineSettings):
    """Nothing but what every engine is told: all else is said by the recipes."""


class RecipeToolEngine(ToolEngine):
    """`agents` holds a conversation for each tool, by qualified name and fingerprint; a session keeps nothing.

    Calls of a batch run beside each other, unless conversations behind them have tools of a stateful namespace: a job
    has one place there.
    """

    def __init__(self, toolsets: Sequence[Toolset], agents: Mapping[Key, Converse], **contract: Any) -> None:
        super().__init__(toolsets, **contract)
        self._agents = agents

    @classmethod
    def from_parts(cls, parts: EngineParts) -> Self:
        """Build every recipe now, with its own engines: a wrong one must not wait for the first call."""
        settings = checked(RecipeSettings, parts.settings, at=parts.at)
        agents = {}
        for toolset in parts.toolsets:
            for tool in toolset.tools:
                agent = SubAgent.of(tool)
                if agent is None:
                    message = (
                        f"engine {parts.name!r} answers tools of `type: recipe` entries, and {tool.qualified_name!r}"
                    )
                    raise ConfigurationInvalid(f"{message} is none; give its entry another `engine`", at=parts.at)
                agents[_key(tool)] = _converse_for(parts, agent)
        return cls(parts.toolsets, agents, **parts.contract(settings))

    async def open(self) -> None:
        """Open every recipe's engines; the first failure closes those that are open."""
        async with AsyncExitStack() as opened:
            for agent in self._agents.values():
                await agent.open()
                opened.push_async_callback(agent.close)
            opened.pop_all()

    async def close(self) -> None:
        """Close them, also after one that raises."""
        async with AsyncExitStack() as closing:
            for agent in self._agents.values():
                closing.push_async_callback(agent.close)

    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> ToolResult:
        agent = SubAgent.model_validate(tool.metadata[SUB_AGENT])
        seed = derive_seed("sub_agent", session.seed, tool.qualified_name, session.call_number)
        has_form = tool.output_parameters is not None
        conversed = await self._agents[_key(tool)](
            Brief(
                prompt=agent.prompt,
                arguments=_with_all_names(call.arguments, tool),
                seed=seed,
                session_id=f"{session.id}.{seed:x}",
                auxdata=session.auxdata,
                response_format=response_format_for(tool) if has_form else None,
                is_result=(lambda text: isinstance(judged(text, tool), Accepted)) if has_form else None,
            )
        )
        return _result(call, tool, conversed, keep_messages=agent.keep_messages)

    def _depends_on_session(self, tool: Tool, toolset: Toolset) -> bool:
        return toolset.stateful or bool(stateful_namespaces([tool]))


def _result(call: ToolCall, tool: Tool, conversed: Conversed, *, keep_messages: bool) -> ToolResult:
    kept: JSONObject = dict(conversed.usage)
    if keep_messages:
        kept["messages"] = conversed.messages
    if conversed.error is not None:
        return ToolResult.failed(call, conversed.error_type, conversed.error, **{SUB_AGENT: kept})
    if tool.output_parameters is None:
        return ToolResult(call.call_id, call.qualified_name, conversed.text, metadata={SUB_AGENT: kept})
    match judged(conversed.text, tool):
        case Accepted(result):
            return ToolResult(call.call_id, call.qualified_name, result, metadata={SUB_AGENT: kept})
        case Rejected(error_type, message):
            return ToolResult.failed(call, error_type, message, **{SUB_AGENT: kept})


def _with_all_names(arguments: JSONObject, tool: Tool) -> JSONObject:
    """The arguments for templates: one that may be left out, and is, puts nothing into a text."""
    return {**dict.fromkeys(tool.parameters.get("properties") or (), ""), **arguments}


def _converse_for(parts: EngineParts, agent: SubAgent) -> Converse:
    if parts.converse_for is None:
        raise ConfigurationInvalid("nobody here can hold the conversations of other recipes", at=(*parts.at, "type"))
    return parts.converse_for(agent.recipe)


def _key(tool: Tool) -> Key:
    return tool.qualified_name, tool.fingerprint
