"""Results of read-only tools, kept so that the same call is not made twice."""

import asyncio
import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from engines.calling.prepared import PreparedTool, PreparedTools
from engines.errors import ConfigurationInvalid
from engines.plain import JSONObject, canonical, compact
from engines.tool import ToolCall, ToolResult
from engines.toolset import CacheSettings, Toolset

CACHED = "cached"  # the metadata key of a result that another call came to
_MOST_LOCAL_BYTES = 64 << 20  # of one toolset in one process
_SHARED_SECONDS = 2.0  # a cache that takes longer than this to answer is worse than none

Ask = Callable[[], Awaitable[ToolResult]]
Clock = Callable[[], float]


class SharedCache(Protocol):
    """A cache that all workers share, keyed by text; a miss is None. Failures are misses: it never raises."""

    async def get(self, key: str) -> bytes | None:
        """Return what is kept, None when there is nothing or the cache cannot be asked."""

    async def put(self, key: str, value: bytes, *, ttl_seconds: float) -> None:
        """Keep a value for so long."""


class LocalCache:
    """The entries used last, within a number and a size; the time is that of the caller."""

    def __init__(self, *, max_entries: int, max_bytes: int) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._entries: OrderedDict[str, tuple[bytes, float]] = OrderedDict()
        self._bytes = 0

    def get(self, key: str, now: float) -> bytes | None:
        """Return what is kept, None when it is not or its time is over."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        value, ends = entry
        if now >= ends:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return value

    def put(self, key: str, value: bytes, ends: float) -> None:
        """Keep a value until then, and let go of those that were not used for longest."""
        self._drop(key)
        self._entries[key] = (value, ends)
        self._bytes += len(value)
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= len(entry[0])


class ResultCache:
    """The results of one toolset's read-only tools: kept here and, if shared, for the whole cluster.

    Equal calls at the same time are one call; when that fails, each of the others is made after all. Errors are never
    kept; faults on purpose are drawn before anything is looked up, so they do not come here.
    """

    def __init__(
        self, settings: CacheSettings, *, scope: str = "", shared: SharedCache | None = None, clock: Clock = time.time
    ) -> None:
        """`scope` tells backends apart: what one account sees is not for another."""
        self._settings = settings
        self._scope = scope
        self._shared = shared if settings.shared else None
        self._clock = clock
        self._local = LocalCache(max_entries=settings.max_entries, max_bytes=_MOST_LOCAL_BYTES)
        self._flights: dict[str, asyncio.Future[bytes | None]] = {}
        self._identities: dict[int, tuple[PreparedTool, str]] = {}

    async def through(self, prepared: PreparedTool, call: ToolCall, ask: Ask) -> ToolResult:
        """Return what is kept of an equal call, else what `ask` returns, which is kept."""
        key = self._key(prepared, call.arguments)
        value = self._local.get(key, self._clock())
        if value is None and key in self._flights:
            # Shielded: one conversation's cancellation must not take the answer from the others.
            value = await asyncio.shield(self._flights[key])
            if value is None:
                return await ask()
        if value is not None and (kept := _read(value)) is not None:
            return _given(kept, call)
        return await self._fly(key, call, ask)

    async def _fly(self, key: str, call: ToolCall, ask: Ask) -> ToolResult:
        """Look in the shared cache, else make the call, while all others who want it wait."""
        flight = self._flights[key] = asyncio.get_running_loop().create_future()
        value: bytes | None = None
        try:
            value = await self._fetched(key)
            if value is not None and (kept := _read(value)) is not None:
                return _given(kept, call)
            result = await ask()
            value = self._written(result)
            if value is not None:
                await self._keep(key, value)
            return result
        finally:
            del self._flights[key]
            flight.set_result(value)

    async def _fetched(self, key: str) -> bytes | None:
        """Return a value of the shared cache that is still fresh; it is kept here for the rest of its time."""
        if self._shared is None:
            return None
        value: bytes | None = await _in_time(self._shared.get(key))
        kept = None if value is None else _read(value)
        if value is None or kept is None:
            return None
        now = self._clock()
        ends = min(kept["kept_at"], now) + self._settings.ttl_seconds
        if now >= ends:
            return None
        self._local.put(key, value, ends)
        return value

    async def _keep(self, key: str, value: bytes) -> None:
        if len(value) > self._settings.max_result_bytes:
            return
        self._local.put(key, value, self._clock() + self._settings.ttl_seconds)
        if self._shared is not None:
            await _in_time(self._shared.put(key, value, ttl_seconds=self._settings.ttl_seconds))

    def _written(self, result: ToolResult) -> bytes | None:
        if result.is_error:
            return None
        kept = {"result": result.result, "metadata": result.metadata, "kept_at": self._clock()}
        try:
            return compact(kept).encode()
        except (TypeError, ValueError, RecursionError):  # Too deep, say: it stays this call's own.
            return None

    def _key(self, prepared: PreparedTool, arguments: JSONObject) -> str:
        text = f"{self._identity(prepared)}\n{canonical(arguments)}"
        return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()

    def _identity(self, prepared: PreparedTool) -> str:
        """Return what every key of a tool begins with: whose it is, what it is, and how its results are cut."""
        known = self._identities.get(id(prepared))
        if known is None:
            parts = [self._scope, self._settings.version, prepared.defaults.max_result_chars, prepared.tool.to_dict()]
            known = self._identities[id(prepared)] = (prepared, canonical(parts))
        return known[1]


def caches_of(
    tools: PreparedTools, *, scope: str, shared: SharedCache | None, clock: Clock = time.time
) -> dict[str, ResultCache]:
    """Return the cache of each namespace that asks for one; ConfigurationInvalid where it could keep nothing."""
    toolsets: dict[str, Toolset] = {each.toolset.namespace: each.toolset for each in tools}
    caches = {}
    for namespace, toolset in toolsets.items():
        if toolset.cache is None:
            continue
        if not any(each.is_cached for each in tools if each.toolset is toolset):
            why = "what its tools say depends on the conversation" if toolset.stateful else _NOTHING_TO_KEEP
            raise ConfigurationInvalid(
                f"nothing of {namespace!r} can be kept: {why}", at=("namespaces", namespace, "cache")
            )
        caches[namespace] = ResultCache(toolset.cache, scope=scope, shared=shared, clock=clock)
    return caches


_NOTHING_TO_KEEP = (
    "none of its tools is known to be read-only and independent of the conversation; say read_only: true under "
    "`tools` of the namespace where it is so, or remove the cache"
)


async def _in_time(asked: Awaitable[Any]) -> Any:
    try:
        async with asyncio.timeout(_SHARED_SECONDS):
            return await asked
    except TimeoutError:
        return None


def _read(value: bytes) -> JSONObject | None:
    """Return `{"result", "metadata", "kept_at"}`, None for what is none: others may write into a shared cache."""
    try:
        kept = json.loads(value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(kept, dict) or kept.keys() != {"result", "metadata", "kept_at"}:
        return None
    is_sound = isinstance(kept["metadata"], dict) and isinstance(kept["kept_at"], int | float)
    return kept if is_sound else None


def _given(kept: JSONObject, call: ToolCall) -> ToolResult:
    return ToolResult(call.call_id, call.qualified_name, kept["result"], metadata={**kept["metadata"], CACHED: True})
