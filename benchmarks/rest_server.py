"""A REST backend for benchmarks: answers every request at once with the same small JSON; prints its address."""

import asyncio
import re
from typing import cast

import uvloop

_BODY = b'{"city":"Lisbon","temperature":21.5,"conditions":"sunny","wind_kmh":12}'
_REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(_BODY), _BODY)
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class RestServer(asyncio.Protocol):
    """One connection; requests may come in parts, and several may come at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own is no subclass
        self._received = b""

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole by now."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            found = _LENGTH.search(self._received, 0, end)
            whole = end + 4 + (int(found[1]) if found else 0)
            if len(self._received) < whole:
                return
            self._received = self._received[whole:]
            self._transport.write(_REPLY)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(RestServer, "127.0.0.1", 0, backlog=2048)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())
