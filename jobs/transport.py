"""kombu's Redis transport, fitted to queues that are delivered once: no acknowledgements, and garbage is outlived."""

from queue import Empty
from typing import Any

import structlog
from kombu.transport import TRANSPORT_ALIASES, redis

log = structlog.get_logger(__name__)

REFUSED_KEY = "parley:refused"
MOST_REFUSED = 1000
MOST_BYTES = 2048


class DeliverOnceChannel(redis.Channel):
    """A channel for ``no_ack`` queues on which garbage in a queue is not the worker's end (F32)."""

    _one_client: Any = None

    def basic_ack(self, delivery_tag: Any, multiple: bool = False) -> None:  # noqa: FBT001, FBT002  # kombu's signature
        """Do nothing: no queue of ours keeps what is delivered, so kombu's two commands a message find nothing."""

    def _create_client(self, asynchronous: bool = False) -> Any:  # noqa: FBT001, FBT002  # kombu's signature
        """Return one client for all publishing: kombu makes one a message, at 0.1 CPU-ms each."""
        if asynchronous:
            return super()._create_client(asynchronous=True)  # type: ignore[no-untyped-call]  # kombu is untyped
        if self._one_client is None or self._one_client.connection_pool is not self.pool:
            self._one_client = super()._create_client()  # type: ignore[no-untyped-call]
        return self._one_client

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]  # kombu is untyped
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as failure:
            # kombu decodes before it delivers; whatever is raised here took one entry off the queue.
            self._set_aside(str(getattr(failure, "doc", ""))[:MOST_BYTES], type(failure).__name__)
            raise Empty from failure

    def _set_aside(self, text: str, cause: str) -> None:
        log.warning("an entry of a queue is no message: set aside", kept_in=REFUSED_KEY, cause=cause)
        with self.conn_or_acquire() as client:
            client.lpush(REFUSED_KEY, text)
            client.ltrim(REFUSED_KEY, 0, MOST_REFUSED - 1)


class DeliverOnceTransport(redis.Transport):
    """The transport with that channel."""

    Channel = DeliverOnceChannel


def use_deliver_once_transport() -> None:
    """Let ``redis://`` and ``rediss://`` mean this transport in this process.

    Not by Celery's ``broker_transport``: it would show as the URL's scheme, which Flower's broker page refuses.
    """
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{DeliverOnceTransport.__name__}"
