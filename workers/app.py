"""What ``celery -A workers.app worker`` loads: the app, its one task and the worker's life."""

from typing import Any

import structlog
from celery.signals import setup_logging, worker_ready

from jobs.celery_app import TASK_NAME, create_app
from jobs.errors import broker_address
from jobs.transport import use_deliver_once_transport
from workers.gathered_events import GatheredEvents
from workers.lifespan import WorkerLifespan
from workers.logs import configure_logs
from workers.settings import WorkerSettings
from workers.task import job_of_message

log = structlog.get_logger(__name__)

settings = WorkerSettings()
use_deliver_once_transport()
app = create_app(settings)
app.lifespan = WorkerLifespan(settings)
app.steps["consumer"].add(GatheredEvents)


@app.task(name=TASK_NAME, acks_late=False, ignore_result=True)  # type: ignore[untyped-decorator]  # Celery is untyped
async def conversation(run_id: Any = None, index: Any = None, namespaces: Any = (), *_rest: Any) -> str:
    """Make one conversation. The message carries ids only; what it asks for is checked against the ledger."""
    job = job_of_message(run_id, index, namespaces)
    if job is None:
        log.warning("message refused: it does not name a job", task=TASK_NAME)
        return "refused"
    lifespan: WorkerLifespan = app.lifespan
    return await lifespan.execute(job)


@setup_logging.connect  # type: ignore[untyped-decorator]  # Celery is untyped
def _configure_logs(**_: Any) -> None:
    configure_logs(settings)


@worker_ready.connect  # type: ignore[untyped-decorator]  # Celery is untyped
def _announce(sender: Any, **_: Any) -> None:
    """Say what this worker really does: its queues, and the limits in effect."""
    log.info(
        "worker ready",
        worker=sender.hostname,
        broker=broker_address(settings.broker),
        queues=sorted(app.amqp.queues.consume_from),
        conversations_at_once=sender.pool.num_processes,
        lease_seconds=settings.lease_seconds,
        heartbeat_seconds=settings.heartbeat_seconds,
        drain_seconds=settings.drain_seconds,
        linger_seconds=settings.linger_seconds,
        shard_bytes=settings.shard_bytes,
        high_water_bytes=settings.high_water_bytes,
        events=settings.events,
    )
