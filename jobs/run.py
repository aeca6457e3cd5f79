"""A run in object storage: its input parts, its recipe and its manifest, written before the first job is sent."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson
import zstandard

from jobs.errors import InputCorrupt, RunConflict
from jobs.routing import Route
from results.errors import AlreadyStored, NotFound
from results.manifest import RUN_ID_PATTERN, InputPart, RunManifest, part_key, read_manifest, write_manifest
from results.store import Store

JSONObject = dict[str, Any]

JOBS_PER_PART = 1000
ROUTE_FIELD = "route"
_RUN_ID = re.compile(RUN_ID_PATTERN)


def is_run_id(text: str) -> bool:
    """Say whether a text can name a run: letters, digits, ``.``, ``_`` and ``-``, at most 128."""
    return _RUN_ID.fullmatch(text) is not None and text not in {".", ".."}


def recipe_key(run_id: str) -> str:
    """Return where a run's resolved recipe lies, relative to the results URL."""
    return f"{run_id}/recipe.json"


@dataclass(slots=True)
class InputWriter:
    """Writes job lines as numbered parts of at most 1,000, each job getting the next index.

    A part is one zstd frame of JSON lines, each the user's line and the number of its route. Identical lines give
    identical bytes, so writing the same input again changes nothing. Where the run exists already (``existing``)
    nothing is written: :func:`create_run` compares, and another input under a used name spoils nothing.
    """

    store: Store
    run_id: str
    existing: RunManifest | None = None
    jobs_per_part: int = JOBS_PER_PART
    count: int = 0
    parts: list[InputPart] = field(default_factory=list)
    routes: list[Route] = field(default_factory=lambda: [()])
    _routes_used: set[int] = field(default_factory=set)
    _lines: list[bytes] = field(default_factory=list)
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def add(self, line: JSONObject, route: Route) -> int:
        """Add one job and return its index."""
        if route not in self.routes:
            self.routes.append(route)
        number = self.routes.index(route)
        self._routes_used.add(number)
        encoded = orjson.dumps({**line, ROUTE_FIELD: number})
        self._digest.update(encoded + b"\n")
        self._lines.append(encoded)
        self.count += 1
        if len(self._lines) == self.jobs_per_part:
            self._write_part()
        return self.count - 1

    def finish(self) -> "WrittenInput":
        """Write what is left and return what the manifest needs."""
        if self._lines:
            self._write_part()
        uniform = next(iter(self._routes_used)) if len(self._routes_used) == 1 else None
        return WrittenInput(tuple(self.parts), self._digest.hexdigest(), tuple(self.routes), uniform, self.count)

    def _write_part(self) -> None:
        data = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(b"\n".join(self._lines) + b"\n")
        key = part_key(self.run_id, len(self.parts))
        if self.existing is None:
            self.store.put(key, data)
        self.parts.append(
            InputPart(
                key=key,
                first_index=self.count - len(self._lines),
                count=len(self._lines),
                digest=hashlib.sha256(data).hexdigest(),
            )
        )
        self._lines.clear()


@dataclass(frozen=True, slots=True)
class WrittenInput:
    """The parts of a run, all durable."""

    parts: tuple[InputPart, ...]
    digest: str
    routes: tuple[Route, ...]
    uniform_route: int | None
    count: int


def create_run(
    store: Store,
    *,
    run_id: str,
    name: str,
    recipe_json: bytes,
    written: WrittenInput,
    limits: Mapping[str, int],
    max_attempts: int = 3,
    bad_lines: int = 0,
) -> RunManifest:
    """Write the recipe and then, last, the manifest; attach to an equal run that is there already.

    Raises :class:`RunConflict` naming the difference when the run exists with other jobs or another recipe.
    """
    manifest = RunManifest(
        run_id=run_id,
        name=name,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        jobs=written.count,
        recipe_key=recipe_key(run_id),
        recipe_digest=hashlib.sha256(recipe_json).hexdigest(),
        input_digest=written.digest,
        parts=written.parts,
        routes=written.routes,
        uniform_route=written.uniform_route,
        limits=dict(limits),
        max_attempts=max_attempts,
        bad_lines=bad_lines,
    )
    existing = read_manifest(store, run_id)
    if existing is not None:
        _refuse_another_run(existing, manifest, store.url)
        return existing
    store.put(manifest.recipe_key, recipe_json)
    try:
        write_manifest(store, manifest)  # last: a run with a manifest is whole
    except AlreadyStored:  # another producer was faster
        existing = read_manifest(store, run_id)
        if existing is None:
            raise
        _refuse_another_run(existing, manifest, store.url)
        return existing
    return manifest


def _refuse_another_run(existing: RunManifest, wanted: RunManifest, where: str) -> None:
    differences = [
        f"{what} ({getattr(existing, field_name)!s:.12} there, {getattr(wanted, field_name)!s:.12} here)"
        for what, field_name in (("recipe", "recipe_digest"), ("jobs", "input_digest"), ("count", "jobs"))
        if getattr(existing, field_name) != getattr(wanted, field_name)
    ]
    if differences:
        raise RunConflict(
            f"run {wanted.run_id} already exists in {where} with another {', another '.join(differences)}; "
            "give this run another --run-id, or use the recipe and the jobs it was made with"
        )


def read_recipe(store: Store, manifest: RunManifest) -> bytes:
    """Return the stored recipe, checked against the manifest's digest."""
    return _read_checked(store, manifest.recipe_key, manifest.recipe_digest)


def read_part(store: Store, part: InputPart) -> list[bytes]:
    """Return the job lines of a part, checked against the manifest's digest."""
    lines = zstandard.ZstdDecompressor().decompress(_read_checked(store, part.key, part.digest)).splitlines()
    if len(lines) != part.count:
        raise InputCorrupt(f"{part.key} holds {len(lines)} jobs, its manifest says {part.count}")
    return lines


def route_number(routes: Sequence[Route], namespaces: Sequence[str]) -> int:
    """Return the number of a job's route in its run's manifest; 0, the stateless one, where it is not there."""
    wanted = tuple(namespaces)
    return next((number for number, route in enumerate(routes) if tuple(route) == wanted), 0)


def part_of(parts: Sequence[InputPart], index: int) -> int:
    """Return the number of the part that holds a job; parts are of equal size but for the last."""
    return min(index // parts[0].count, len(parts) - 1)


def _read_checked(store: Store, key: str, digest: str) -> bytes:
    try:
        data = store.get(key)
    except NotFound as failure:
        raise InputCorrupt(f"{key} is missing in {store.url}; the run cannot go on without it") from failure
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise InputCorrupt(f"{key} in {store.url} was changed: sha256 {found:.12}…, its manifest says {digest:.12}…")
    return data
