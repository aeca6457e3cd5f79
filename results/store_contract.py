"""The contract every store keeps: whole objects under keys, durable when `put` returns."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One row of a listing."""

    key: str
    size: int


class Store(Protocol):
    """Objects under keys; every call blocks, so call it in a thread (see AsyncStore).

    All of them raise StoreUnavailable or StoreRefused, and InvalidKey for a key that is not safe.
    """

    @property
    def url(self) -> str:
        """Where the objects lie, without credentials."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Store the object, replacing one that is there; on return it is durable and seen whole by every reader."""
        ...

    def put_new(self, key: str, data: bytes) -> None:
        """Like put, but AlreadyStored when the key is taken; a store that cannot know replaces the object."""
        ...

    def get(self, key: str) -> bytes:
        """Return the whole object; NotFound."""
        ...

    def get_tail(self, key: str, nbytes: int) -> bytes:
        """Return the last `nbytes` bytes, the whole object when it is shorter; NotFound."""
        ...

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        """Return the objects of a folder and of the folders in it, sorted by key; a missing folder is empty."""
        ...

    def delete(self, key: str) -> None:
        """Remove the object; a missing one is no error."""
        ...

    def check(self) -> None:
        """Write and delete a probe object, so that trouble shows before the work begins."""
        ...
