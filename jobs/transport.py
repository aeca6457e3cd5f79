"""kombu's Redis transport, made to outlive a message that is not one (F32): it is set aside, the worker goes on."""

from queue import Empty
from typing import Any

import structlog
from kombu.transport import TRANSPORT_ALIASES, redis

log = structlog.get_logger(__name__)

REFUSED_KEY = "parley:refused"
MOST_REFUSED = 1000
MOST_BYTES = 2048


class TolerantChannel(redis.Channel):
    """A channel on which garbage in a queue is not the worker's end."""

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


class TolerantTransport(redis.Transport):
    """The transport with that channel."""

    Channel = TolerantChannel


def make_tolerant() -> None:
    """Let ``redis://`` and ``rediss://`` mean this transport in this process.

    Not by Celery's ``broker_transport``: it would show as the URL's scheme, which Flower's broker page refuses.
    """
    for scheme in ("redis", "rediss"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{TolerantTransport.__name__}"
