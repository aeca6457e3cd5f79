"""Prism (Stoplight): a server that nobody here wrote, made of an OpenAPI document; it refuses unsound requests."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SERVERS = Path(__file__).resolve().parents[2] / ".venv" / "test-servers" / "node_modules"
DOCUMENTS = SERVERS / "@readme" / "oas-examples"
LAST_PATH = "/the-end"
_LISTENS = re.compile(r"listening on (http://\S+)")


def skip_without_npm() -> None:
    """Skip the test where the foreign servers could not be installed; fail where they merely were not."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("no npm here, so no foreign servers: install Node.js >= 20")
    assert DOCUMENTS.exists(), "scripts/ensure_test_servers.sh was not run (make test runs it)"


@dataclass
class Prism:
    """Where it listens, and what it said."""

    url: str
    lines: list[str] = field(default_factory=list)
    _said_last: asyncio.Event = field(default_factory=asyncio.Event)

    async def has_said_everything(self) -> None:
        """Wait for its words on all requests so far: it writes them after it answers."""
        host, _, port = self.url.removeprefix("http://").partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET {LAST_PATH} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        async with asyncio.timeout(30):
            await self._said_last.wait()
        writer.close()
        await writer.wait_closed()

    async def listen(self, output: asyncio.StreamReader) -> None:
        """Keep what it says until it ends."""
        while line := await output.readline():
            self.lines.append(line.decode())
            if f"{LAST_PATH} " in self.lines[-1] and "terminated" in self.lines[-1]:
                self._said_last.set()


@asynccontextmanager
async def prism(document: Path) -> AsyncIterator[Prism]:
    """Serve a document for the block."""
    process = await asyncio.create_subprocess_exec(
        "node", str(SERVERS / ".bin" / "prism"), "mock", "--host", "127.0.0.1", "--port", "0", str(document),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    draining: asyncio.Task[None] | None = None
    try:
        async with asyncio.timeout(60):
            server = await _listening(process.stdout)
        draining = asyncio.create_task(server.listen(process.stdout))
        yield server
    finally:
        with suppress(ProcessLookupError):  # It may have crashed.
            process.terminate()
        await process.wait()
        if draining is not None:
            await draining


async def _listening(output: asyncio.StreamReader) -> Prism:
    said = []
    while line := await output.readline():
        said.append(line.decode())
        if found := _LISTENS.search(said[-1]):
            return Prism(found[1], said)
    raise AssertionError("prism ended before it listened:\n" + "".join(said))
