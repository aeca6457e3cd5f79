"""Task events gathered: published a few times a second, not one message at each turn of kombu's hub."""

from typing import Any

from celery import bootsteps

GATHER_SECONDS = 0.5
MOST_EVENTS = 200


class GatheredEvents(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery is untyped
    """A step of Celery's consumer that slows its event dispatcher down; Flower sees everything, half a second later.

    Publishing costs a tenth of a conversation of workload W when each turn of the hub does it.
    """

    requires = ("celery.worker.consumer.events:Events",)

    def __init__(self, consumer: Any, **options: Any) -> None:
        self._is_due = False
        super().__init__(consumer, **options)

    def start(self, consumer: Any) -> None:
        """Take the dispatcher over, each time there is a new one: after every lost connection."""
        dispatcher, hub = consumer.event_dispatcher, consumer.hub
        self._is_due = False

        def flush() -> None:
            self._is_due = False
            if consumer.event_dispatcher is dispatcher:
                dispatcher.flush()

        def later() -> None:
            if not self._is_due:
                self._is_due = True
                hub.call_later(GATHER_SECONDS, flush)

        if dispatcher is not None and hub is not None:
            dispatcher.buffer_limit = MOST_EVENTS
            dispatcher.on_send_buffered = later

    def stop(self, consumer: Any) -> None:
        """Publish what is left, while there is a connection."""
        if consumer.event_dispatcher is not None:
            consumer.event_dispatcher.flush()
