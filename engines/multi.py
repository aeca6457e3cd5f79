"""The `multi` engine: each call goes to the engine of its namespace, and all see one history (D60-D64, D31)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from types import MappingProxyType
from typing import Any, Self

from pydantic import Field, model_validator

from engines.batch import Batch
from engines.calling.faults import NEEDING_THE_TOOL, drawn_fault, faulty_result
from engines.chance import derive_seed
from engines.checked import checked
from engines.engine import ToolEngine
from engines.errors import ConfigurationInvalid, SessionStateInvalid
from engines.history import DENIED
from engines.kind_settings import EngineParts, EngineSettings
from engines.nearest import hint, listed
from engines.permissions import NO_RULES, Permissions
from engines.plain import JSONObject
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall, ToolResult


class MultiSettings(EngineSettings):
    """`routes` says which engine of the block answers which namespace."""

    routes: dict[str, str] = Field(min_length=1)

    @model_validator(mode="after")
    def _faults_need_no_tool(self) -> Self:
        for category in self.error_categories:
            if category.type in NEEDING_THE_TOOL:
                raise ValueError(f"{category.type} changes a tool's own answers: say it on the engine that gives them")
        return self


class MultiToolEngine(ToolEngine):
    """Routes by namespace; engines work beside each other within a batch, each in call order (decision 5).

    The history is the session's trunk; each engine's session holds a branch of it, so that what an engine sees does not
    depend on how quick the others are, and the trunk stays in call order.
    """

    def __init__(
        self,
        engines: Mapping[str, ToolEngine],
        routes: Mapping[str, str],
        *,
        permissions: Permissions = NO_RULES,
        **contract: Any,
    ) -> None:
        """The outermost one of a worker holds the recipe's `permissions`: a refused call reaches no engine."""
        super().__init__((), **contract)
        self._permissions = permissions
        first_name = {id(engine): name for name, engine in reversed(list(engines.items()))}
        # One object under two names is one engine: its sessions are set up once (rule D60).
        self._engines = {name: engine for name, engine in engines.items() if first_name[id(engine)] == name}
        self._routes = {namespace: first_name[id(engines[name])] for namespace, name in routes.items()}
        self.toolsets = MappingProxyType(
            {
                namespace: self._engines[name].toolsets[namespace]
                for namespace, name in self._routes.items()
                if namespace in self._engines[name].toolsets
            }
        )

    @classmethod
    def from_parts(cls, parts: EngineParts) -> Self:
        """Build the engines that `routes` names; each namespace that comes here needs a route."""
        settings = checked(MultiSettings, parts.settings, at=parts.at)
        for toolset in parts.toolsets:
            if toolset.namespace not in settings.routes:
                message = f"no route for namespace {toolset.namespace!r}; {hint(toolset.namespace, settings.routes)}"
                raise ConfigurationInvalid(message, at=(*parts.at, "routes"))
        engines = {
            name: parts.engine_named(name, (*parts.at, "routes", namespace))
            for namespace, name in settings.routes.items()
        }
        return cls(engines, settings.routes, **parts.contract(settings))

    async def open(self) -> None:
        """Open every engine and its stand-ins; if one fails, those opened before it are closed again."""
        async with AsyncExitStack() as opened:
            for engine in self._everyone():
                await engine.open()
                opened.push_async_callback(engine.close)
            opened.pop_all()

    async def close(self) -> None:
        """Close every engine, also after one that raises."""
        async with AsyncExitStack() as closing:
            for engine in self._everyone():
                closing.push_async_callback(engine.close)

    def _everyone(self) -> Iterator[ToolEngine]:
        for engine in self._engines.values():
            yield from engine.stand_ins.values()
            yield engine

    def leaves_behind(self, namespaces: Collection[str]) -> bool:
        """Whether any of the engines asked leaves something."""
        needed = {self._routes[namespace] for namespace in namespaces if namespace in self._routes}
        return any(self._engines[name].leaves_behind(namespaces) for name in needed)

    def takes_up(self, namespaces: Collection[str]) -> frozenset[str]:
        """What the engines asked take up, each of the namespaces that are routed to it."""
        taken: set[str] = set()
        for name in {self._routes[namespace] for namespace in namespaces if namespace in self._routes}:
            own = [namespace for namespace in namespaces if self._routes.get(namespace) == name]
            taken |= self._engines[name].takes_up(own)
        return frozenset(taken)

    async def reap(self, session_id: str, *, scratch: Mapping[str, Any], namespaces: Collection[str]) -> None:
        """Tear down what every engine left, also after one that raises."""
        needed = {self._routes[namespace] for namespace in namespaces if namespace in self._routes}
        async with AsyncExitStack() as reaping:
            for name in needed:
                reap = partial(self._engines[name].reap, scratch=scratch.get(name, {}), namespaces=namespaces)
                reaping.push_async_callback(reap, session_id)

    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> Any:
        """Not reached: batches are split before single calls are."""
        raise NotImplementedError

    async def _open_session(self, session: Session) -> None:
        """Set up every engine's session, or none (rule D63); each takes its own part of a restored scratch (D64)."""
        restored, session.scratch = session.scratch, {}
        for name in restored:
            if name not in self._engines:
                message = f"session {session.id!r}: its state is of engine {name!r}; {hint(name, self._engines)}"
                raise SessionStateInvalid(message)
        async with AsyncExitStack() as opened:
            for name, engine in self._engines_of(session):
                branch = session.history.branch()
                await engine.setup(
                    session.id,
                    initial_state=None if session.lacks_scratch else {"scratch": restored.get(name, {})},
                    auxdata=session.auxdata,
                    seed=derive_seed("engine", session.seed, name),
                    history=branch,
                    namespaces=session.namespaces,
                )
                opened.push_async_callback(engine.teardown, session.id)
                session.resources[name] = branch
            opened.pop_all()

    async def _close_session(self, session: Session) -> None:
        """End every engine's session, also after one that raises (rule E5)."""
        async with AsyncExitStack() as closing:
            for _, engine in self._engines_of(session):
                closing.push_async_callback(engine.teardown, session.id, keeping=session.kept)

    def _engines_of(self, session: Session) -> list[tuple[str, ToolEngine]]:
        """The engines that the session may ask: a job without tools of a namespace opens nothing on its backend."""
        needed = {name for namespace, name in self._routes.items() if session.needs(namespace)}
        return [(name, engine) for name, engine in self._engines.items() if name in needed]

    async def _scratch_of(self, session: Session) -> JSONObject:
        scratches = {name: await engine.get_session_scratch(session.id) for name, engine in self._engines_of(session)}
        return {name: scratch for name, scratch in scratches.items() if scratch}

    async def _perform(self, session: Session, calls: Sequence[ToolCall]) -> list[ToolResult]:
        batch = self._split(session, calls)
        try:
            await batch.run({name: self._engines[name].execute for name in batch.positions}, session.id)
        finally:
            # Also when a toolset aborted the turn or the job was cancelled: what was done is not forgotten.
            for entry in batch.entries(session.resources):
                session.record(entry)
        return batch.finished()

    async def _rehearse(self, rehearsal: Session, calls: Sequence[ToolCall]) -> list[ToolResult]:
        batch = self._split(rehearsal, calls)
        await batch.run({name: self._engines[name].simulate for name in batch.positions}, rehearsal.id)
        return batch.finished()

    def _split(self, session: Session, calls: Sequence[ToolCall]) -> Batch:
        """Bucket the calls by engine; answer here what has none (rule D62), and what fails on purpose."""
        for branch in session.resources.values():
            branch.rebase()
        batch = Batch(calls)
        for position, call in enumerate(calls):
            name = self._routes.get(call.namespace) if session.needs(call.namespace) else None
            if name is None:
                message = f"Unknown tool '{call.qualified_name}'; known namespaces: {listed(self._routes) or 'none'}"
                batch.results[position] = ToolResult.failed(call, ErrorType.unknown_tool, message)
            elif (instead := self._instead(session, call, session.call_count + position)) is not None:
                batch.results[position] = instead
            else:
                batch.positions.setdefault(name, []).append(position)
        return batch

    def _instead(self, session: Session, call: ToolCall, number: int) -> ToolResult | None:
        """Return what a call is told that reaches no engine: the recipe forbids it, or it fails on purpose here."""
        if (refusal := self._permissions.refusal(call)) is not None:
            return ToolResult.failed(call, ErrorType.permission, refusal, **{DENIED: True})
        if not self._error_categories:
            return None
        fault = drawn_fault(self._error_categories, seed=session.seed, call_number=number, tool=call.qualified_name)
        return None if fault is None else faulty_result(fault, call)
