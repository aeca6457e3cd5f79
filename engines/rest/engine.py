"""The `rest` engine: each call is one request of an HTTP API, if need be in a session of the conversation's."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Self

from engines.calling.prepared import PreparedTools
from engines.checked import checked
from engines.engine import ToolEngine
from engines.errors import ConfigurationInvalid, InvalidTool, SessionLost, ToolFailed
from engines.history import HistoryEntry
from engines.kind_settings import EngineParts
from engines.loaders.openapi.metadata import RestOperation
from engines.nearest import hint
from engines.network.failures import NetworkFailure
from engines.network.origins import OriginInvalid
from engines.plain import canonical
from engines.rest.answer import raise_failed, value_or_failure
from engines.rest.backends import Backend, Backends
from engines.rest.conversations import Conversations
from engines.rest.masking import Masking
from engines.rest.operation import Operation
from engines.rest.replay import changes
from engines.rest.session_settings import SESSION_ID
from engines.rest.sessions import Sessions
from engines.rest.settings import RestSettings
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall, ToolResult
from engines.toolset import Toolset

_KEY_OF = "key_of"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class _Target:
    """A tool's operation and the server that has it; or why there is none."""

    operation: Operation | None = None
    backend: Backend | None = None
    problem: str = ""


class RestToolEngine(ToolEngine):
    """Makes requests of calls. What a namespace's sessions are is in `conversations`; a session's scratch is theirs."""

    def __init__(
        self,
        toolsets: Sequence[Toolset],
        settings: RestSettings,
        *,
        clock: Callable[[], float] = time.time,
        **contract: Any,
    ) -> None:
        if settings.idempotency_key is not None:
            toolsets = [_repeatable(toolset) for toolset in toolsets]
        self._own_state = frozenset(settings.sessions)
        super().__init__(toolsets, **contract)
        self._settings = settings
        self._clock = clock
        self._backends = Backends(settings)
        self._mask = Masking(settings.masked)
        own = self._backends.own()
        sessions = {
            namespace: Sessions.of(namespace, each, own.base_path)
            for namespace, each in settings.sessions.items()
            if own is not None
        }
        self._conversations = Conversations(sessions, own, self._mask)
        stateful = [each for each in toolsets if each.namespace in self._own_state]
        self._stateful_tools = PreparedTools(stateful, self._depends_on_session)
        self._targets = {tool: self._target(tool) for each in toolsets for tool in each.tools}

    @classmethod
    def from_parts(cls, parts: EngineParts) -> Self:
        """Read the settings and every tool's operation; nothing is contacted yet."""
        settings = checked(RestSettings, parts.settings, at=parts.at)
        _check_namespaces(settings, parts)
        try:
            engine = cls(parts.toolsets, settings, **parts.contract(settings))
        except ValueError as error:
            raise ConfigurationInvalid(str(error), at=(*parts.at, "sessions")) from error
        for target in engine._targets.values():
            if target.problem:
                raise ConfigurationInvalid(target.problem, at=parts.at)
        return engine

    async def open(self) -> None:
        """Read what TLS needs; nothing is contacted yet."""
        await self._backends.open()

    async def close(self) -> None:
        """Close all connections."""
        await self._backends.close()

    def leaves_behind(self, namespaces: Collection[str]) -> bool:
        """Whether any of these namespaces has sessions that somebody must tear down."""
        return any(
            self._settings.sessions[each].teardown is not None for each in self._own_state.intersection(namespaces)
        )

    def takes_up(self, namespaces: Collection[str]) -> frozenset[str]:
        """Return those whose sessions say `resume: reuse`, so that a teardown between two attempts must spare them."""
        sessions = {each: self._settings.sessions[each] for each in self._own_state.intersection(namespaces)}
        return frozenset(
            name for name, each in sessions.items() if each.resume == "reuse" and each.teardown is not None
        )

    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> ToolResult:
        value = await self._asked(session, call, tool, session.call_number)
        return ToolResult(call.call_id, call.qualified_name, result=value)

    async def _asked(self, session: Session, call: ToolCall, tool: Tool, number: int) -> Any:
        """Return what the server says to a call; `number` tells it from the session's others."""
        target = self._targets[tool]
        if target.operation is None or target.backend is None:
            raise ToolFailed(ErrorType.execution, target.problem)
        supplied = self._conversations.supplied(session, tool.namespace)
        if self._settings.idempotency_key is not None and target.operation.method not in _SAFE_METHODS:
            key = {self._settings.idempotency_key.header.lower(): self._key(session, call, number)}
            supplied = replace(supplied, headers={**supplied.headers, **key})
        request = target.operation.request(call.arguments, supplied)
        try:
            answer = await target.backend.ask(request)
        except NetworkFailure as failure:
            raise_failed(failure)
        self._conversations.check_not_lost(session, tool.namespace, answer)
        return value_or_failure(
            answer.status,
            self._mask(answer.body),
            content_type=answer.headers.get("content-type", ""),
            retry_after=answer.headers.get("retry-after"),
            date=answer.headers.get("date"),
            now=self._clock(),
        )

    def _key(self, session: Session, call: ToolCall, number: int) -> str:
        """Return the same key for every try of a call, also in a later attempt at the job."""
        handle = self._conversations.handle(session, call.namespace)
        whose = session.scratch.get(_KEY_OF, session.id) if handle is None else handle[SESSION_ID]
        text = f"{whose}\n{number}\n{call.qualified_name}\n{canonical(call.arguments)}"
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def _depends_on_session(self, tool: Tool, toolset: Toolset) -> bool:
        return toolset.namespace in self._own_state or super()._depends_on_session(tool, toolset)

    # Sessions on the backend

    async def _open_session(self, session: Session) -> None:
        if self._settings.idempotency_key is not None:
            session.scratch.setdefault(_KEY_OF, session.id)
        if self._own_state:
            made = {namespace: self._changes_in(session, namespace) for namespace in self._own_state}
            await self._conversations.open(session, made, lambda number, entry: self._replay(session, number, entry))

    async def _close_session(self, session: Session) -> None:
        await self._conversations.close(session)

    def _changes_in(self, session: Session, namespace: str) -> list[HistoryEntry]:
        """Return what the conversation has done to its state in a namespace so far."""

        def is_writer(call: ToolCall) -> bool:
            prepared = self._stateful_tools.match(call) if call.namespace == namespace else None
            return prepared is not None and not prepared.is_read_only

        return changes(session.history, is_writer=is_writer)

    async def _replay(self, session: Session, number: int, entry: HistoryEntry) -> None:
        """Make a call again; SessionLost when it did something before and does not now."""
        prepared = self._stateful_tools.match(entry.call)
        if prepared is None:
            return
        call = replace(entry.call, arguments=prepared.filled(entry.call.arguments))
        try:
            async with asyncio.timeout(prepared.defaults.timeout_seconds):
                await self._asked(session, call, prepared.tool, number)
        except (TimeoutError, ToolFailed) as error:
            if not entry.result.is_error:
                cause = f"{call.qualified_name} failed when it was made again: {str(error) or 'no answer in time'}"
                raise SessionLost(call.namespace, session.id, cause) from error

    # Made once

    def _target(self, tool: Tool) -> _Target:
        try:
            described = RestOperation.of(tool)
            backend = self._backends.of(described)
            if backend is None:
                return _Target(
                    problem=f"tool {tool.qualified_name!r} says no server (rest_base_url); say the engine's url"
                )
            reserved = self._settings.reserved_in(tool.namespace)
            operation = Operation.of(tool, described, base_path=backend.base_path, reserved=reserved)
        except InvalidTool as error:
            return _Target(problem=str(error))
        except OriginInvalid as error:
            return _Target(problem=f"tool {tool.qualified_name!r}: its server's URL {error}; say the engine's url")
        return _Target(operation, backend)


def _repeatable(toolset: Toolset) -> Toolset:
    """Return the toolset with every tool that may be asked twice: the server knows a call by its key (rule D59)."""
    tools = tuple(replace(tool, metadata={"idempotent": True, **tool.metadata}) for tool in toolset.tools)
    return replace(toolset, tools=tools)


def _check_namespaces(settings: RestSettings, parts: EngineParts) -> None:
    """ConfigurationInvalid for a namespace that does not come here, or comes and is not listed."""
    known = {toolset.namespace for toolset in parts.toolsets}
    for key, names in (("namespaces", settings.namespaces or ()), ("sessions", tuple(settings.sessions))):
        for namespace in names:
            if namespace not in known:
                message = f"no tools of namespace {namespace!r} come here; {hint(namespace, known)}"
                raise ConfigurationInvalid(message, at=(*parts.at, key))
    if settings.namespaces is not None and (unlisted := sorted(known.difference(settings.namespaces))):
        message = f"namespace {unlisted[0]!r} is answered by this engine and not listed; list it"
        raise ConfigurationInvalid(message, at=(*parts.at, "namespaces"))
