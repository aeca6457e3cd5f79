"""The `local` engine: a tool is a Python function of the user's own module."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, Self

from pydantic import Field

from engines.calling.answering import Admitted
from engines.calling.effects import Effects
from engines.calling.faults import PARTIAL_RESULT
from engines.calling.result_cache import CACHED
from engines.calling.simulation import SIMULATED_BY
from engines.checked import checked
from engines.engine import ToolEngine
from engines.errors import ToolFailed
from engines.history import EXTERNAL, INJECTED, HistoryEntry
from engines.kind_settings import EngineParts, EngineSettings
from engines.local.context import Context
from engines.local.functions import LocalFunction, function_named, imported, local_function
from engines.local.threads import Threads
from engines.plain import JSONObject
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall
from engines.toolset import ToolDefaults, Toolset

_INLINE_ATTRIBUTE = "INLINE"


class LocalSettings(EngineSettings):
    """`inline` runs plain functions in the event loop itself: right for those that take microseconds, and only those.

    `setup` and `teardown` name functions of the module, called with (session_id, context) once per namespace.
    """

    module: str = Field(min_length=1)
    functions: dict[str, str] = Field(default_factory=dict)
    inline: bool | None = None
    setup: str | None = None
    teardown: str | None = None
    threads: int = Field(default=8, ge=1, le=256)


class LocalEngine(ToolEngine):
    """Calls functions: async ones are awaited, plain ones run in the engine's threads unless it is `inline`."""

    effects = Effects.session

    def __init__(
        self,
        toolsets: Sequence[Toolset],
        functions: Mapping[str, LocalFunction],
        *,
        inline: bool = False,
        on_setup: Callable[..., Any] | None = None,
        on_teardown: Callable[..., Any] | None = None,
        threads: int = 8,
        **contract: Any,
    ) -> None:
        self._functions = functions  # first: `_depends_on_session` asks them
        super().__init__(toolsets, **contract)
        self._inline = inline
        self._on_setup = on_setup
        self._on_teardown = on_teardown
        self._threads = Threads(threads, name="local-tool")

    @classmethod
    def from_parts(cls, parts: EngineParts) -> Self:
        """Import the module and find every function; ConfigurationInvalid for the first that is not there."""
        settings = checked(LocalSettings, parts.settings, at=parts.at)
        module = imported(settings.module, at=(*parts.at, "module"))
        inline = settings.inline if settings.inline is not None else bool(getattr(module, _INLINE_ATTRIBUTE, False))
        return cls(
            parts.toolsets,
            _functions_of(module, settings, parts),
            inline=inline,
            on_setup=_hook(module, settings.setup, "setup", parts),
            on_teardown=_hook(module, settings.teardown, "teardown", parts),
            threads=settings.threads,
            **parts.contract(settings),
        )

    async def close(self) -> None:
        """Let the threads go; one that hangs in a user's function is not waited for."""
        self._threads.close()

    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> Any:
        function = self._functions[call.qualified_name]
        context = self._context(session, tool.namespace, tool)
        keywords = function.keywords(call.arguments, context)
        try:
            if function.is_async:
                return await function.function(**keywords)
            if self._inline:
                return function.function(**keywords)
            return await self._threads.run(partial(function.function, **keywords))
        except SystemExit as error:
            raise ToolFailed(ErrorType.execution, f"the function called sys.exit({error.code!r})") from error

    def _depends_on_session(self, tool: Tool, toolset: Toolset) -> bool:
        """A function that asks for no context knows of no session, unless its toolset says that it does."""
        return toolset.stateful or self._functions[tool.qualified_name].takes_context

    async def _open_session(self, session: Session) -> None:
        """Give each namespace its scratch: as the module's setup leaves it, then as the restored state had it."""
        restored = session.scratch
        session.scratch = {namespace: {} for namespace in self.toolsets if session.needs(namespace)}
        await self._run_hook(self._on_setup, session, "setup")
        for namespace, scratch in restored.items():
            session.scratch[namespace] = scratch
        if session.lacks_scratch:
            await self._make_again(session)

    async def _make_again(self, session: Session) -> None:
        """Make the scratch of an earlier session by its calls: of a fork, only those are known.

        One that failed may fail again; ToolFailed where one that did not fail does so now.
        """
        asking = [entry for entry in session.history if self._asked_for_context(entry)]
        for entry, planned in zip(asking, self._answering.plan(session, [each.call for each in asking]), strict=True):
            if not isinstance(planned, Admitted):
                continue
            try:
                async with asyncio.timeout(planned.prepared.defaults.timeout_seconds):
                    await self._call(session, planned.call, planned.prepared.tool)
            except Exception as error:
                if entry.result.is_error:
                    continue
                message = f"{entry.call.qualified_name} cannot be run again for the turns that are kept"
                raise ToolFailed(ErrorType.execution, f"{message}: {type(error).__name__}: {error}") from error

    def _asked_for_context(self, entry: HistoryEntry) -> bool:
        """Whether a call of the history reached a function that may have kept something."""
        function = self._functions.get(entry.call.qualified_name)
        stood_in = entry.result.metadata.keys() & {CACHED, SIMULATED_BY, EXTERNAL}
        was_faulty = entry.result.metadata.get(INJECTED) not in {None, PARTIAL_RESULT}
        return function is not None and function.takes_context and entry.was_performed and not (stood_in or was_faulty)

    async def _scratch_of(self, session: Session) -> JSONObject:
        return {namespace: scratch for namespace, scratch in session.scratch_copy().items() if scratch}

    async def _close_session(self, session: Session) -> None:
        await self._run_hook(self._on_teardown, session, "teardown")

    async def _run_hook(self, hook: Callable[..., Any] | None, session: Session, name: str) -> None:
        if hook is None:
            return
        try:
            async with asyncio.timeout(ToolDefaults().timeout_seconds):
                for namespace in filter(session.needs, self.toolsets):
                    context = self._context(session, namespace, None)
                    if asyncio.iscoroutinefunction(hook):
                        await hook(session.id, context)
                    elif self._inline:
                        hook(session.id, context)
                    else:
                        await self._threads.run(partial(hook, session.id, context))
        except Exception as error:
            message = f"{name} of session {session.id!r} failed: {type(error).__name__}: {error}"
            raise ToolFailed(ErrorType.execution, message) from error

    def _context(self, session: Session, namespace: str, tool: Tool | None) -> Context:
        scratch: JSONObject = session.scratch.setdefault(namespace, {})
        return Context(session.auxdata, tool, scratch, session.id, session.seed)


def _functions_of(module: ModuleType, settings: LocalSettings, parts: EngineParts) -> dict[str, LocalFunction]:
    functions = {}
    for toolset in parts.toolsets:
        for tool in toolset.tools:
            chosen = settings.functions.get(tool.qualified_name, settings.functions.get(tool.name))
            at = (*parts.at, "module") if chosen is None else (*parts.at, "functions")
            functions[tool.qualified_name] = local_function(module, chosen, tool, at=at)
    return functions


def _hook(module: ModuleType, name: str | None, key: str, parts: EngineParts) -> Callable[..., Any] | None:
    if name is None:
        return None
    return function_named(module, name, wanted_by=key, at=(*parts.at, key))
