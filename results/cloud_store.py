"""A store in a bucket (s3://, gs://, az://) through obstore's blocking calls."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, ObjectStore, S3Store

from results.cloud_errors import store_error
from results.errors import NotFound, StoreRefused
from results.keys import check_folder, check_key
from results.store_contract import StoredObject

PROBE_KEY: Final = "parley-probe"
CONNECT_TIMEOUT: Final = timedelta(seconds=5)
REQUEST_TIMEOUT: Final = timedelta(seconds=60)
REQUEST_RETRIES: Final = 3
LIST_PAGE_ROWS: Final = 1000

_ENDPOINT_VARIABLES: Final = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_ENDPOINT_URL", "GOOGLE_BASE_URL"),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
CLOUD_SCHEMES: Final = tuple(_ENDPOINT_VARIABLES)


class CloudStore:
    """Objects in a bucket below the URL's path; credentials and endpoint come from the store's usual variables.

    `put_new` asks the server once, because who calls it retries with a count of its own; all other calls repeat
    themselves a few times on 429, 5xx and lost connections.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._url = f"{parts.scheme}://{parts.hostname or ''}{parts.path}".rstrip("/")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise StoreRefused(f"results URL {self._url}: put credentials into the environment, not into the URL")
        if not parts.hostname:
            raise StoreRefused(f"results URL {self._url!r}: no bucket; write {parts.scheme}://BUCKET/FOLDER")
        self._scheme = parts.scheme
        self._patient = _opened(self._url, parts.scheme, retries=REQUEST_RETRIES)
        self._once = _opened(self._url, parts.scheme, retries=0)

    @property
    def url(self) -> str:
        """Where the objects lie."""
        return self._url

    def put(self, key: str, data: bytes) -> None:
        """Store the object, replacing one that is there."""
        with self._translated("write", check_key(key)):
            self._patient.put(key, data, use_multipart=False)

    def put_new(self, key: str, data: bytes) -> None:
        """Store the object with If-None-Match: a server that ignores the header replaces the object."""
        with self._translated("write", check_key(key)):
            self._once.put(key, data, use_multipart=False, mode="create")

    def get(self, key: str) -> bytes:
        """Return the whole object."""
        with self._translated("read", check_key(key)):
            return self._patient.get(key).bytes().to_bytes()

    def get_tail(self, key: str, nbytes: int) -> bytes:
        """Return the last bytes of the object by a range request."""
        with self._translated("read", check_key(key)):
            if self._scheme != "az" and nbytes > 0:  # Azure knows no suffix ranges
                try:
                    return self._patient.get(key, options={"range": {"suffix": nbytes}}).bytes().to_bytes()
                except BaseError as error:
                    if not _ignores_ranges(error):
                        raise
            size = self._patient.head(key)["size"]
            if size == 0 or nbytes == 0:
                return b""
            try:
                return self._patient.get_range(key, start=max(0, size - nbytes), end=size).to_bytes()
            except BaseError as error:
                if not _ignores_ranges(error):
                    raise
            return self._patient.get(key).bytes().to_bytes()[-nbytes:]

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        """Return the objects below a folder, sorted by key (S3 Express sorts its own way, so we sort)."""
        folder = check_folder(prefix)
        with self._translated("list", folder):
            pages = self._patient.list(f"{folder}/" if folder else None, chunk_size=LIST_PAGE_ROWS)
            rows = [StoredObject(row["path"], row["size"]) for page in pages for row in page]
        return iter(sorted(rows, key=lambda row: row.key))

    def delete(self, key: str) -> None:
        """Remove the object; a missing one is no error."""
        try:
            with self._translated("delete", check_key(key)):
                self._patient.delete(key)
        except NotFound:
            return

    def check(self) -> None:
        """Write a probe object and delete it, where deleting is allowed: workers may go without that right."""
        self.put(PROBE_KEY, b"parley\n")
        try:
            self.delete(PROBE_KEY)
        except StoreRefused:
            return

    @contextmanager
    def _translated(self, verb: str, key: str) -> Iterator[None]:
        try:
            yield
        except (BaseError, FileNotFoundError) as error:
            # `from None`: the original's text holds the server's whole answer, which may quote credentials.
            raise store_error(error, verb, f"{self._url}/{key}".rstrip("/")) from None


def _ignores_ranges(error: BaseError) -> bool:
    """Whether the server answered a range request with something else: an empty object, or one that knows no ranges."""
    return "NotPartial" in str(error)


def _opened(url: str, scheme: str, *, retries: int) -> ObjectStore:
    store_class: type[S3Store | GCSStore | AzureStore] = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}[scheme]
    try:
        return store_class.from_url(
            url,
            client_options={
                "timeout": REQUEST_TIMEOUT,
                "connect_timeout": CONNECT_TIMEOUT,
                "allow_http": _has_plain_endpoint(scheme),
            },
            retry_config={"max_retries": retries, "retry_timeout": REQUEST_TIMEOUT},
        )
    except BaseError as error:
        raise StoreRefused(
            f"results URL {url}: the store cannot be set up from the environment ({type(error).__name__}); "
            f"check the {scheme} variables: account, region, endpoint, credentials"
        ) from None


def _has_plain_endpoint(scheme: str) -> bool:
    """Plain http only where the environment itself names such an endpoint (a server of one's own, a test)."""
    endpoint = next((os.environ[name] for name in _ENDPOINT_VARIABLES[scheme] if os.environ.get(name)), "")
    return endpoint.startswith("http://")
