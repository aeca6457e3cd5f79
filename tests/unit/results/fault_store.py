"""A real file store whose puts fail as a script says: before storing, after storing, for ever, by a bug."""

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, repeat

from results.errors import StoreRefused, StoreUnavailable
from results.store import Store, StoredObject


class Fault(StrEnum):
    """What happens to one put."""

    NONE = "none"
    BEFORE = "before"  # fails, nothing is stored
    AFTER = "after"  # fails although the object is stored
    REFUSED = "refused"  # the store says no
    HANG = "hang"  # waits for `release`, then stores
    BUG = "bug"  # an exception that is none of ours


@dataclass
class FaultStore:
    """Wraps a store; the n-th put meets the n-th fault, later ones the last (`then`)."""

    inner: Store
    faults: Iterable[Fault] = ()
    then: Fault = Fault.NONE
    puts: list[tuple[str, bytes]] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    hanging: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._script = iter(self.faults)
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return self.inner.url

    def put_new(self, key: str, data: bytes) -> None:
        with self._lock:
            fault = next(chain(self._script, repeat(self.then)))
            self.puts.append((key, data))
            self.threads.add(threading.get_ident())
        if fault is Fault.BEFORE:
            raise StoreUnavailable(f"{key}: made to fail before storing")
        if fault is Fault.REFUSED:
            raise StoreRefused(f"{key}: made to refuse")
        if fault is Fault.BUG:
            raise ZeroDivisionError("made to break")
        if fault is Fault.HANG:
            self.hanging.set()
            self.release.wait(30)
        self.inner.put_new(key, data)
        if fault is Fault.AFTER:
            raise StoreUnavailable(f"{key}: made to fail after storing")

    def put(self, key: str, data: bytes) -> None:
        self.put_new(key, data)

    def get(self, key: str) -> bytes:
        return self.inner.get(key)

    def get_tail(self, key: str, nbytes: int) -> bytes:
        return self.inner.get_tail(key, nbytes)

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        return self.inner.list(prefix)

    def delete(self, key: str) -> None:
        self.inner.delete(key)

    def check(self) -> None:
        self.inner.check()
