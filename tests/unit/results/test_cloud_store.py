"""What goes wrong with a bucket: each answer of a server becomes an error that says what to do, and no secret."""

import threading
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from results.cloud_errors import store_error
from results.cloud_store import CloudStore
from results.errors import AlreadyStored, NotFound, ResultsError, StoreRefused, StoreUnavailable
from results.reading import shard_keys, visible_records
from results.shards import ShardWriter
from results.store import AsyncStore, open_store
from tests.support.object_store import ObjectStoreServer
from tests.unit.results.made_records import made_line

ACCESS_KEY = "AKIACANARYACCESSKEY"
SECRET_KEY = "canary-secret-key"
SESSION_TOKEN = "canary-session-token"


class FaultyServer(ThreadingHTTPServer):
    """Answers puts with a scripted (status, code, stored first?), everything else through the real server."""

    daemon_threads = True

    def __init__(self, upstream: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream
        self.answers: list[tuple[int, str, bool]] = []
        self.puts: list[tuple[str, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FaultyServer
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        status, answer = 500, b""
        headers: dict[str, str] = {}
        scripted = None
        if self.command == "PUT":
            self.server.puts.append((self.path, body))
            scripted = self.server.answers.pop(0) if self.server.answers else None
        if scripted is None or scripted[2]:
            status, answer, headers = self._forwarded(body)
        if scripted is not None:
            status, code, _ = scripted
            answer = (
                f"<Error><Code>{code}</Code><Message>no</Message>"
                f"<AWSAccessKeyId>{ACCESS_KEY}</AWSAccessKeyId><Token>{SESSION_TOKEN}</Token></Error>"
            ).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _forwarded(self, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        kept = {name: value for name, value in self.headers.items() if name.lower() not in {"host", "content-length"}}
        connection = HTTPConnection(self.server.upstream.removeprefix("http://"))
        with closing(connection):
            connection.request(self.command, self.path, body, kept)
            answer = connection.getresponse()
            names = ("etag", "last-modified", "content-type", "content-range")
            return answer.status, answer.read(), {name: answer.headers[name] for name in names if answer.headers[name]}

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer  # noqa: N815 - the names http.server looks for

    def log_message(self, *values: object) -> None:
        pass


@pytest.fixture
def server(object_store_server: ObjectStoreServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    with FaultyServer(object_store_server.endpoint) as faulty:
        threading.Thread(target=faulty.serve_forever, kwargs={"poll_interval": 0.01}).start()
        for name, value in {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_SESSION_TOKEN": SESSION_TOKEN,
            "AWS_ENDPOINT_URL": faulty.url,
        }.items():
            monkeypatch.setenv(name, value)
        yield faulty
        faulty.shutdown()


@pytest.fixture
def store_url(server: FaultyServer, object_store_server: ObjectStoreServer) -> str:
    return f"s3://{object_store_server.make_bucket()}/results"


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (500, "InternalError", StoreUnavailable),
        (502, "", StoreUnavailable),
        (503, "SlowDown", StoreUnavailable),
        (429, "TooManyRequests", StoreUnavailable),
        (409, "ConditionalRequestConflict", StoreUnavailable),
        (409, "BlobAlreadyExists", AlreadyStored),
        (412, "PreconditionFailed", AlreadyStored),
        (400, "InvalidRequest", StoreRefused),
        (401, "Unauthorized", StoreRefused),
        (403, "ExpiredToken", StoreRefused),
        (403, "RequestTimeTooSkewed", StoreRefused),
        (403, "SignatureDoesNotMatch", StoreRefused),
        (404, "NoSuchBucket", StoreRefused),
        (507, "QuotaExceeded", StoreRefused),
    ],
)
def test_each_answer_of_a_server_has_its_error_and_no_secret(
    server: FaultyServer, store_url: str, status: int, code: str, expected: type[ResultsError]
) -> None:
    server.answers = [(status, code, False)]
    with pytest.raises(expected) as caught:
        CloudStore(store_url).put_new("run/a", b"1")
    message = str(caught.value)
    assert f"{store_url}/run/a" in message
    assert "; " in message
    if expected is not AlreadyStored:
        assert f"HTTP {status}" in message
        assert code in message
    for secret in (ACCESS_KEY, SECRET_KEY, SESSION_TOKEN):
        assert secret not in message
    assert caught.value.__cause__ is None
    assert len(server.puts) == 1


def test_f13_a_plain_put_repeats_itself_on_a_passing_fault(server: FaultyServer, store_url: str) -> None:
    server.answers = [(503, "SlowDown", False), (500, "InternalError", True)]
    store = CloudStore(store_url)
    store.put("run/a", b"1")
    assert store.get("run/a") == b"1"
    assert len(set(server.puts)) == 1


async def test_f13_a_shard_stored_behind_a_500_is_found_again_not_doubled(server: FaultyServer, store_url: str) -> None:
    server.answers = [(500, "InternalError", False), (500, "InternalError", True)]
    async with AsyncStore(open_store(store_url)) as store:
        async with ShardWriter(store, "run", writer="w", others=lambda: 0, backoff_seconds=0.0) as writer:
            key = await writer.write(*made_line(0))
        assert len(server.puts) == 3
        assert len(set(server.puts)) == 1
        assert shard_keys(store.store, "run") == [key]
        assert [record["index"] for record in visible_records(store.store, "run")] == [0]


def test_a_missing_bucket_is_not_taken_for_an_empty_one(server: FaultyServer) -> None:
    store = CloudStore("s3://no-such-bucket/results")
    for use in (lambda: store.put("a", b""), lambda: store.get("a"), lambda: [*store.list("")], store.check):
        with pytest.raises(StoreRefused, match=r"s3://no-such-bucket/results.*NoSuchBucket.*create the bucket"):
            use()


def test_a_server_that_is_not_there_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    with pytest.raises(StoreUnavailable, match=r"Connection refused from 127\.0\.0\.1:1; check the endpoint") as caught:
        CloudStore("s3://bucket/results").check()
    assert ACCESS_KEY not in str(caught.value)


def test_a_worker_without_the_right_to_delete_passes_the_check(
    bucket_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: CloudStore, key: str) -> None:
        raise StoreRefused(key)

    monkeypatch.setattr(CloudStore, "delete", refused)
    CloudStore(bucket_url).check()


def test_text_of_a_foreign_error_never_leaves() -> None:
    error = FileNotFoundError(
        "Object at location x?sig=SIGNATURE not found https://user:password@host.example/x?sig=SIGNATURE"
    )
    message = str(store_error(error, "read", "az://container/x"))
    assert isinstance(store_error(error, "read", "az://container/x"), NotFound)
    assert "SIGNATURE" not in message
    assert "password" not in message
    assert "host.example" in message


@pytest.mark.parametrize(
    "text", ["kind: Timeout, source: TimedOut at https://host.example/x", 'Os { message: "Connection reset by peer" }']
)
def test_a_lost_connection_is_unavailable(text: str) -> None:
    error = store_error(OSError(text), "write", "s3://bucket/x")
    assert isinstance(error, StoreUnavailable)
    assert "no answer in time from host.example" in str(error) or "Connection reset by peer" in str(error)
