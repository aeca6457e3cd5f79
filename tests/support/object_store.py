"""A real S3 server (moto) on a free loopback port, and fixtures that hand out empty buckets of it."""

import os
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import IO
from urllib.request import Request, urlopen

import pytest

_ADDRESS = re.compile(rb"Running on (http://127\.0\.0\.1:\d+)")


@dataclass(frozen=True, slots=True)
class ObjectStoreServer:
    """A running server; processes that get its environment can use every bucket of it."""

    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        """The variables an S3 client needs to reach this server."""
        return {
            "AWS_ACCESS_KEY_ID": "parley-test",
            "AWS_SECRET_ACCESS_KEY": "not-a-secret",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
        }

    def make_bucket(self) -> str:
        """Return the name of a new, empty bucket."""
        bucket = f"bucket-{uuid.uuid4().hex[:12]}"
        with urlopen(Request(f"{self.endpoint}/{bucket}", method="PUT")):
            return bucket


@contextmanager
def running_object_store(log_path: Path) -> Iterator[ObjectStoreServer]:
    """A server from the moment it listens to the end of the block; it logs to `log_path`."""
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with subprocess.Popen(
        [Path(sys.executable).with_name("moto_server"), "-H", "127.0.0.1", "-p", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=quiet | {"PYTHONUNBUFFERED": "1"},
    ) as process:
        addresses: Queue[str | None] = Queue()
        reader = threading.Thread(target=_read_log, args=(process.stderr, log_path, addresses))
        reader.start()
        try:
            address = addresses.get(timeout=60)
            if address is None:
                raise RuntimeError(f"moto_server ended before it listened; its log: {log_path}")
            yield ObjectStoreServer(address)
        finally:
            process.kill()
            reader.join()


def _read_log(stream: IO[bytes] | None, log_path: Path, addresses: "Queue[str | None]") -> None:
    """Report the address once and go on reading: a server with a full pipe would stand still."""
    with log_path.open("wb") as log:
        for line in stream or ():
            log.write(line)
            if found := _ADDRESS.search(line):
                addresses.put(found[1].decode())
    addresses.put(None)


@pytest.fixture(scope="session")
def object_store_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStoreServer]:
    """The S3 server of this test process."""
    with running_object_store(tmp_path_factory.mktemp("object-store") / "moto.log") as server:
        yield server


@pytest.fixture
def bucket_url(object_store_server: ObjectStoreServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty bucket, with the environment set up to use it."""
    for name in (*object_store_server.environment, "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in object_store_server.environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{object_store_server.make_bucket()}/results"
