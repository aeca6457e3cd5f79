"""The Celery app: every setting stated, with the reason for each that differs from Celery's default."""

import ssl
from typing import Any

from celery import Celery
from celery.app.amqp import AMQP, Queues
from kombu.entity import Exchange, Queue

from jobs.routing import CONVERSATIONS_QUEUE
from jobs.settings import BrokerSettings

TASK_NAME = "parley.conversation"


class DeliverOnceQueues(Queues):  # type: ignore[misc]  # Celery is untyped
    """A table of queues that makes a missing one without acknowledgements.

    Celery would make ``-Q ns.hr_api`` with its own defaults, that is with acknowledgements, which lose and repeat
    messages at a broken connection; the ledger, not the broker, remembers what is not done.
    """

    def new_missing(self, name: str) -> Queue:
        """Make the queue that nobody declared (Celery calls this for ``-Q NAME``)."""
        return deliver_once_queue(name)


class DeliverOnceAMQP(AMQP):  # type: ignore[misc]  # Celery is untyped
    """Celery's message layer with our table of queues."""

    queues_cls = DeliverOnceQueues


def deliver_once_queue(name: str) -> Queue:
    """Declare a queue whose messages are delivered at most once (``no_ack``)."""
    exchange = Exchange(name, type="direct")  # type: ignore[no-untyped-call]  # kombu is untyped
    return Queue(name, exchange, routing_key=name, no_ack=True)  # type: ignore[no-untyped-call]


def create_app(settings: BrokerSettings) -> Celery:
    """Create the app that workers load and that Celery's own commands (worker, flower, inspect) use."""
    app = Celery("parley", broker=settings.broker, amqp="jobs.celery_app:DeliverOnceAMQP")
    app.conf.update(configuration(settings))
    return app


# kombu verifies nothing when a rediss:// URL has no ssl_ parameters; those of a URL go before these.
_VERIFIED = {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True}


def configuration(settings: BrokerSettings) -> dict[str, Any]:
    """Return Celery's settings; what equals Celery's default is stated where the design depends on it."""
    return {
        # The messages: JSON only, both ways. Nothing is ever unpickled (Celery's default, stated for safety).
        "task_serializer": "json",
        "result_serializer": "json",
        "event_serializer": "json",
        "accept_content": ["json"],
        "result_accept_content": ["json"],
        # The queues: at most once, held by nobody. The claim in the ledger makes exactly-once above it.
        "task_default_queue": CONVERSATIONS_QUEUE,
        "task_queues": [deliver_once_queue(CONVERSATIONS_QUEUE)],
        "task_create_missing_queues": True,
        "worker_disable_prefetch": True,  # take a message only with a free slot: a message in memory is lost at kill -9
        "worker_prefetch_multiplier": 1,
        "task_acks_late": False,  # there are no acknowledgements
        "task_reject_on_worker_lost": False,
        # Results: nobody reads them; the record in object storage is the result.
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "result_backend": None,
        # The pool: one event loop holds every conversation of the process.
        "worker_pool": "workers.pool:AsyncioPool",
        "worker_concurrency": 200,
        "worker_hijack_root_logger": False,  # structlog writes the logs
        "worker_redirect_stdouts": False,  # a tool that prints must not become a log record
        "worker_enable_remote_control": settings.remote_control,
        # A revoked or cancelled job is the ledger's matter: no state kept on disk.
        "worker_cancel_long_running_tasks_on_connection_loss": False,  # a lost broker connection stops no conversation
        "worker_max_tasks_per_child": None,
        "worker_soft_shutdown_timeout": 0.0,  # the pool drains by itself at SIGTERM
        # Events: Flower shows jobs by them; PARLEY_EVENTS=false switches them off for the largest runs.
        "worker_send_task_events": settings.events,
        "task_send_sent_event": False,  # the feeder writes messages by script; a sent event would double its work
        "event_queue_expires": 60.0,
        "event_queue_ttl": 10.0,
        # The connection: keep trying, for ever; a worker without its broker waits, it does not die.
        "broker_use_ssl": _VERIFIED if settings.broker.startswith("rediss://") else False,
        "broker_connection_retry": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_pool_limit": 16,  # Flower holds two for each of its inspections, and stands still when they run out
        "broker_transport_options": {
            "socket_timeout": settings.socket_timeout_seconds,  # without it a hung Redis hangs a publish for ever
            "socket_connect_timeout": settings.socket_timeout_seconds,
            "socket_keepalive": True,
            "health_check_interval": 15,
            "sep": ":",
            "queue_order_strategy": "round_robin",  # no queue starves another on a worker that serves several
        },
        "enable_utc": True,
        "timezone": "UTC",
        "task_track_started": False,  # needs a result backend
        "task_default_rate_limit": None,
        "worker_disable_rate_limits": True,  # a rate-limited task would wait in the worker's memory
    }
