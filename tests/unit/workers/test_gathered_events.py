"""Task events on a real Redis: gathered into few messages, none lost, whatever happens to the connection."""

import json
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from jobs.celery_app import create_app
from jobs.settings import BrokerSettings
from tests.support.redis_server import RedisServer
from workers.gathered_events import GATHER_SECONDS, MOST_EVENTS, GatheredEvents


@dataclass
class Hub:
    """kombu's hub, with the time in the test's hands."""

    due: list[Callable[[], None]] = field(default_factory=list)

    def call_later(self, seconds: float, act: Callable[[], None]) -> None:
        assert seconds == GATHER_SECONDS
        self.due.append(act)

    def time_passes(self) -> None:
        due, self.due = self.due, []
        for act in due:
            act()


@dataclass
class Consumer:
    """What the step sees of Celery's consumer."""

    event_dispatcher: Any
    hub: Hub | None


class Listener:
    """Flower's end: the messages on the channel of task events, as many events as each has."""

    def __init__(self, server: RedisServer) -> None:
        self.client = server.client()
        self.channel = self.client.pubsub()  # type: ignore[no-untyped-call]
        self.channel.psubscribe("*celeryev*")
        assert self.channel.get_message(timeout=5) is not None

    def messages(self) -> list[int]:
        sizes = []
        while (message := self.channel.get_message(timeout=0.2)) is not None:
            if message["type"] == "pmessage":
                body = json.loads(message["data"])["body"]
                sizes.append(len(json.loads(b64decode(body))))
        return sizes


@pytest.fixture
def listener(broker: RedisServer) -> Iterator[Listener]:
    listening = Listener(broker)
    yield listening
    listening.channel.close()
    listening.client.close()


@pytest.fixture
def app(broker: RedisServer) -> Iterator[Celery]:
    made = create_app(BrokerSettings(broker=broker.url))
    made.conf.event_serializer = "json"
    yield made
    made.close()


@pytest.fixture
def consumer(app: Celery) -> Iterator[Consumer]:
    with app.connection_for_write() as connection:
        dispatcher = app.events.Dispatcher(connection, buffer_group=["task"], on_send_buffered=lambda: None)
        yield Consumer(dispatcher, Hub())
        dispatcher.close()


def send(consumer: Consumer, count: int) -> None:
    for number in range(count):
        consumer.event_dispatcher.send("task-succeeded", uuid=f"run.{number:06d}")


def test_events_of_half_a_second_are_one_message(consumer: Consumer, listener: Listener) -> None:
    GatheredEvents(consumer).start(consumer)
    assert consumer.hub is not None
    send(consumer, 50)
    assert listener.messages() == []
    assert len(consumer.hub.due) == 1
    consumer.hub.time_passes()
    send(consumer, 3)
    consumer.hub.time_passes()
    assert [size for size in listener.messages() if size] == [50, 3]


def test_many_events_do_not_wait(consumer: Consumer, listener: Listener) -> None:
    GatheredEvents(consumer).start(consumer)
    send(consumer, MOST_EVENTS + 1)
    assert listener.messages() == [MOST_EVENTS]


def test_what_is_left_is_published_when_the_worker_stops(consumer: Consumer, listener: Listener) -> None:
    step = GatheredEvents(consumer)
    step.start(consumer)
    send(consumer, 7)
    step.stop(consumer)
    assert listener.messages() == [7]


def test_after_a_lost_connection_the_new_dispatcher_is_slowed_down_too(
    app: Celery, consumer: Consumer, listener: Listener
) -> None:
    step = GatheredEvents(consumer)
    step.start(consumer)
    assert consumer.hub is not None
    send(consumer, 1)
    earlier = consumer.hub.due
    with app.connection_for_write() as connection:
        consumer.hub = Hub()
        consumer.event_dispatcher = app.events.Dispatcher(
            connection, buffer_group=["task"], on_send_buffered=lambda: None
        )
        step.start(consumer)
        send(consumer, 2)
        for act in earlier:
            act()
        assert listener.messages() == [], "a timer of the old dispatcher does nothing to the new one"
        consumer.hub.time_passes()
        assert listener.messages() == [2]
        consumer.event_dispatcher.close()


@pytest.mark.parametrize("missing", ["event_dispatcher", "hub"])
def test_without_events_or_hub_everything_is_as_celery_has_it(consumer: Consumer, missing: str) -> None:
    dispatcher = consumer.event_dispatcher
    before = dispatcher.on_send_buffered
    setattr(consumer, missing, None)
    step = GatheredEvents(consumer)
    step.start(consumer)
    step.stop(consumer)
    assert dispatcher.on_send_buffered is before


def test_the_workers_app_has_the_step(checkout: Path) -> None:
    asked = "from workers.app import app; print([step.__name__ for step in app.steps['consumer']])"
    answer = subprocess.run([sys.executable, "-c", asked], cwd=checkout, capture_output=True, text=True, check=True)
    assert "GatheredEvents" in answer.stdout
