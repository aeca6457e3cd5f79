"""What a run is: its recipe and input parts with their digests, written once and last."""

import time
from collections.abc import Callable
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from results.errors import AlreadyStored, NotFound, ResultsError, StoreUnavailable
from results.keys import RUN_ID_PATTERN, check_key, check_run_id, manifest_key, part_key
from results.store_contract import Store

__all__ = [
    "RUN_ID_PATTERN",
    "InputPart",
    "RunManifest",
    "check_run_id",
    "manifest_key",
    "part_key",
    "read_manifest",
    "write_manifest",
]

_PAUSES_SECONDS: Final = (0.2, 1.0, 3.0)

Key = Annotated[str, AfterValidator(check_key)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class InputPart(BaseModel):
    """One stored part of a run's job lines."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: Key
    first_index: int = Field(ge=0)
    count: int = Field(ge=1)
    digest: Digest


class RunManifest(BaseModel):
    """A run, as workers and feeders find it; nothing that is not named here can be started."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    run_id: Annotated[str, AfterValidator(check_run_id)]
    name: str
    created_at: str
    jobs: int = Field(ge=0)
    recipe_key: Key
    recipe_digest: Digest
    input_digest: Digest
    parts: tuple[InputPart, ...]
    routes: tuple[tuple[str, ...], ...]
    uniform_route: int | None = None
    limits: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    max_attempts: int = Field(default=3, ge=1)
    bad_lines: int = Field(default=0, ge=0)


def write_manifest(store: Store, manifest: RunManifest, *, wait: Callable[[float], None] = time.sleep) -> None:
    """Write the manifest of a new run; one that says the same is no error, another one is AlreadyStored."""
    key = manifest_key(manifest.run_id)
    data = manifest.model_dump_json().encode()
    for pause_seconds in (*_PAUSES_SECONDS, None):
        try:
            store.put_new(key, data)
            return
        except AlreadyStored:
            if store.get(key) == data:
                return  # ours, by an earlier try or by an earlier life of this process
            raise
        except StoreUnavailable:
            if pause_seconds is None:
                raise
            wait(pause_seconds)


def read_manifest(store: Store, run_id: str) -> RunManifest | None:
    """Return the manifest of a run, None when there is no such run here."""
    key = manifest_key(run_id)
    try:
        data = store.get(key)
    except NotFound:
        return None
    try:
        return RunManifest.model_validate_json(data)
    except ValidationError as error:
        raise ResultsError(
            f"{store.url}/{key}: not a manifest this version reads ({error.error_count()} faults); "
            "use the version that wrote it, or submit under a new run id"
        ) from error
