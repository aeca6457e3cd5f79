"""A Celery app on the asyncio pool, for the pool's tests: its tasks say in Redis what they saw."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import redis
from celery.exceptions import SoftTimeLimitExceeded
from celery.signals import task_postrun, task_prerun

from jobs.celery_app import create_app
from jobs.settings import BrokerSettings

app = create_app(BrokerSettings())
told = redis.Redis.from_url(os.environ["PARLEY_BROKER"])


def tell(what: str) -> None:
    told.rpush("told", what)


class Lifespan:
    """Says when it opens, drains and closes; `stopping` is what well-behaved tasks wait for."""

    drain_seconds = 5.0

    def __init__(self) -> None:
        self.stopping = asyncio.Event()

    def start_draining(self) -> None:
        self.stopping.set()

    @asynccontextmanager
    async def hosted(self) -> AsyncIterator[None]:
        tell("opened")
        yield
        tell("closed")


app.lifespan = Lifespan()


@app.task(name="echo", bind=True)
async def echo(self: Any, word: str) -> str:
    before = self.request.id
    await asyncio.sleep(0)
    assert self.request.id == before
    tell(f"echo {word} {self.request.id}")
    return word


@app.task(name="meet")
async def meet(number: int) -> None:
    """Ends when all have come: only possible when they run at the same time."""
    count = await asyncio.to_thread(told.incr, "met")
    while count < number:
        count = int(await asyncio.to_thread(told.get, "met") or 0)
    tell("met")


@app.task(name="plain")
def plain(word: str) -> str:
    tell(f"plain {word}")
    return word


@app.task(name="fail")
async def fail() -> None:
    await asyncio.sleep(0)
    raise ValueError("on purpose")


@app.task(name="leave")
async def leave() -> None:
    raise SystemExit(3)


@app.task(name="cancels_itself")
async def cancels_itself() -> None:
    raise asyncio.CancelledError


@app.task(name="limited", soft_time_limit=1)
async def limited() -> None:
    try:
        await asyncio.Event().wait()
    except SoftTimeLimitExceeded:
        tell("soft limit")


@app.task(name="until_drained")
async def until_drained() -> None:
    tell("waiting")
    await app.lifespan.stopping.wait()
    tell("drained")


@app.task(name="stubborn")
async def stubborn() -> None:
    tell("stubborn")
    try:
        await asyncio.Event().wait()
    finally:
        tell("cancelled")


@task_prerun.connect
def _prerun(task_id: str, **_: Any) -> None:
    tell(f"prerun {task_id}")


@task_postrun.connect
def _postrun(task_id: str, state: str, **_: Any) -> None:
    tell(f"postrun {task_id} {state}")
