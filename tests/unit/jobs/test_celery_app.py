"""The Celery app's settings that the design depends on."""

import pytest
from celery import Celery

from jobs.celery_app import create_app
from jobs.settings import BrokerSettings


@pytest.fixture
def app() -> Celery:
    return create_app(BrokerSettings(broker="redis://127.0.0.1:1/0"))


def test_every_queue_is_delivered_once_declared_or_not(app: Celery) -> None:
    app.amqp.queues.select(["conversations", "ns.hr_api"])
    queues = app.amqp.queues.consume_from
    assert set(queues) == {"conversations", "ns.hr_api"}
    assert all(queue.no_ack for queue in queues.values())


def test_sec_s1_only_json_is_read_and_written(app: Celery) -> None:
    assert app.conf.accept_content == ["json"]
    assert app.conf.result_accept_content == ["json"]
    assert {app.conf.task_serializer, app.conf.result_serializer, app.conf.event_serializer} == {"json"}


def test_a_worker_takes_no_more_messages_than_it_has_slots(app: Celery) -> None:
    assert app.conf.worker_disable_prefetch is True


def test_the_pool_needs_no_flag_and_no_variable(app: Celery) -> None:
    assert app.conf.worker_pool == "workers.pool:AsyncioPool"


def test_events_can_be_switched_off_for_large_runs() -> None:
    assert (
        create_app(BrokerSettings(broker="redis://127.0.0.1:1/0", events=False)).conf.worker_send_task_events is False
    )
