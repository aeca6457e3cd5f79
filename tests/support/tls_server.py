"""A small HTTPS server on sockets and a thread, which tells a client by an alert why it is refused, as real ones do."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{}"


@dataclass
class TLSServer:
    """`requests` holds the heads of what came through; `handshakes` counts connections that tried."""

    port: int
    requests: list[bytes] = field(default_factory=list)
    handshakes: int = 0


@contextmanager
def tls_server(context: ssl.SSLContext, answer: bytes = _ANSWER) -> Iterator[TLSServer]:
    """Serve one connection at a time until the block ends."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = TLSServer(listening.getsockname()[1])
    is_over = threading.Event()

    def serve() -> None:
        while not is_over.is_set():
            connection, _ = listening.accept()
            with connection:
                if is_over.is_set():
                    return
                connection.settimeout(10)
                server.handshakes += 1
                secured = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                with suppress(OSError), secured:
                    if (head := _head(secured)) is not None:
                        server.requests.append(head)
                        secured.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server
    finally:
        is_over.set()
        with suppress(OSError), socket.create_connection(("127.0.0.1", server.port), timeout=5):
            pass  # wakes the accept
        thread.join()
        listening.close()


def _head(secured: ssl.SSLSocket) -> bytes | None:
    """Return a request's head; None for a client that was refused, when it has heard so."""
    try:
        secured.do_handshake()
    except ssl.SSLError:
        # A socket that is closed with something unread is reset, and the alert would be lost.
        socket.socket.shutdown(secured, socket.SHUT_WR)
        while socket.socket.recv(secured, 65_536):
            pass
        return None
    head = b""
    while b"\r\n\r\n" not in head:
        if not (part := secured.recv(65_536)):
            return None
        head += part
    return head
