"""A store in a folder: an object is whole and on the disk before `put` returns, or it is not there at all."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from results.errors import AlreadyStored, NotFound, ResultsError, StoreRefused, StoreUnavailable
from results.keys import check_folder, check_key
from results.store_contract import StoredObject

PROBE_KEY: Final = "parley-probe"
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
_HALF_WRITTEN: Final = ".tmp"  # a key never ends like this while it is being listed

_FULL: Final = "free some space there, or choose another results URL"
_LOCKED: Final = "make the folder writable for this user, or choose another results URL"
_IN_THE_WAY: Final = "a file stands where a folder is needed: move it away, or choose another results URL"
_WAYS_OUT: Final = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "raise the file size limit of this process, or write smaller shards",
    errno.EACCES: _LOCKED,
    errno.EPERM: _LOCKED,
    errno.EROFS: _LOCKED,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EEXIST: _IN_THE_WAY,
    errno.EISDIR: "a folder stands where the object belongs: move it away, or choose another results URL",
    errno.ENAMETOOLONG: "choose a shorter run id or results URL",
}


class FileStore:
    """Objects as files below a root folder; the root is made by the first put."""

    def __init__(self, root: Path) -> None:
        self._root = root.expanduser().absolute()
        self._durable_folders: set[Path] = set()

    @property
    def url(self) -> str:
        """Where the objects lie."""
        return self._root.as_uri()

    def put(self, key: str, data: bytes) -> None:
        """Write beside the place, make durable, then rename: no reader ever sees a part of an object."""
        self._write(key, data, only_new=False)

    def put_new(self, key: str, data: bytes) -> None:
        """Like put, but AlreadyStored when the file is there."""
        self._write(key, data, only_new=True)

    def get(self, key: str) -> bytes:
        """Return the whole object."""
        path = self._path(key)
        with _translated("read", path):
            return path.read_bytes()

    def get_tail(self, key: str, nbytes: int) -> bytes:
        """Return the last bytes of the object."""
        path = self._path(key)
        with _translated("read", path), path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - nbytes))
            return file.read()

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        """Return the objects below a folder, sorted by key, without those being written."""
        folder = check_folder(prefix)
        with _translated("list", self._root / folder):
            yield from self._objects_below(self._root / folder, f"{folder}/" if folder else "")

    def delete(self, key: str) -> None:
        """Remove the file; its folder stays."""
        path = self._path(key)
        with _translated("delete", path), suppress(FileNotFoundError):
            path.unlink()

    def check(self) -> None:
        """Write and delete a probe file."""
        self.put(PROBE_KEY, b"parley\n")
        self.delete(PROBE_KEY)

    def _path(self, key: str) -> Path:
        return self._root / check_key(key)

    def _write(self, key: str, data: bytes, *, only_new: bool) -> None:
        path = self._path(key)
        with _translated("write", path):
            self._make_folder_durable(path.parent)
            if only_new and path.exists():
                _sync_folder(path.parent)  # an earlier try may have failed just after its rename
                raise AlreadyStored(f"{path}: the file is there already; it was left as it is")
            half_written = path.with_name(f".{path.name[:64]}.{secrets.token_hex(8)}{_HALF_WRITTEN}")
            try:
                _write_durably(half_written, data)
                if only_new:
                    _appear_once(half_written, path)
                else:
                    half_written.replace(path)
            except FileExistsError:
                half_written.unlink()
                raise AlreadyStored(f"{path}: the file is there already; it was left as it is") from None
            except BaseException:
                with suppress(OSError):
                    half_written.unlink()
                raise
            _sync_folder(path.parent)

    def _make_folder_durable(self, folder: Path) -> None:
        """Make the folder and those above it, and sync each parent: a file is lost with its folder."""
        if folder in self._durable_folders and folder.is_dir():
            return
        missing = [above for above in (folder, *folder.parents) if not above.exists()]
        for above in reversed(missing):
            with suppress(FileExistsError):  # another process was faster; a file in the way fails below
                above.mkdir()
        within_root = [above for above in (folder, *folder.parents) if above.is_relative_to(self._root)]
        for parent in {*(above.parent for above in missing), *within_root}:
            _sync_folder(parent)
        self._durable_folders.add(folder)

    def _objects_below(self, folder: Path, key_prefix: str) -> Iterator[StoredObject]:
        try:
            with os.scandir(folder) as found:
                # A folder sorts as "name/", so that keys come in the order of their characters.
                rows = sorted((f"{row.name}/" if row.is_dir() else row.name, row) for row in found)
        except FileNotFoundError:
            return
        for name, row in rows:
            if name.endswith("/"):
                yield from self._objects_below(Path(row.path), key_prefix + name)
            elif not name.endswith(_HALF_WRITTEN):
                with suppress(FileNotFoundError):  # deleted since
                    yield StoredObject(key_prefix + name, row.stat().st_size)


def _write_durably(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _appear_once(written: Path, path: Path) -> None:
    """Give the file its name, or FileExistsError: of two writers at once exactly one gets it."""
    try:
        os.link(written, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        written.rename(path)  # a file system without hard links: what was checked before has to do
        return
    written.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _translated(verb: str, path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        if verb == "read":
            raise NotFound(f"{path}: no such object; check the results URL and the run id") from error
        raise _store_error(verb, path, error) from error
    except IsADirectoryError as error:
        if verb == "read":
            raise NotFound(f"{path}: a folder, not an object; check the run id") from error
        raise _store_error(verb, path, error) from error
    except OSError as error:
        raise _store_error(verb, path, error) from error


def _store_error(verb: str, path: Path, error: OSError) -> ResultsError:
    cause = os.strerror(error.errno) if error.errno else str(error)
    way_out = _WAYS_OUT.get(error.errno or 0)
    if way_out is None:
        return StoreUnavailable(f"cannot {verb} {path}: {cause}; look at the disk or mount it lies on, then try again")
    return StoreRefused(f"cannot {verb} {path}: {cause}; {way_out}")
