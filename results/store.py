"""Opens the store a results URL names."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from results.async_store import AsyncStore
from results.cloud_store import CLOUD_SCHEMES, CloudStore
from results.errors import StoreRefused
from results.file_store import FileStore
from results.store_contract import Store, StoredObject

__all__ = ["AsyncStore", "Store", "StoredObject", "open_store"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=://)")


def open_store(url: str) -> Store:
    """Return the store of a plain path, file:///path, s3://bucket/folder, gs://bucket/folder or az://container/folder.

    Nothing is contacted yet: `check` does that. StoreRefused for a URL that names no store.
    """
    found = _SCHEME.match(url)
    if not url:
        raise StoreRefused("results URL: it is empty; name a folder or s3://BUCKET/FOLDER")
    if found is None:
        return FileStore(Path(url))
    scheme = found[0].lower()
    if scheme == "file":
        return FileStore(_file_path(url))
    if scheme in CLOUD_SCHEMES:
        return CloudStore(scheme + url[len(scheme) :])
    known = ", ".join(f"{name}://" for name in ("file", *CLOUD_SCHEMES))
    raise StoreRefused(f"results URL: no store for {scheme}://; use a folder, {known}")


def _file_path(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
        raise StoreRefused(f"results URL {url[:200]}: write file:///absolute/path, or a plain path")
    return Path(unquote(parts.path))
