"""`parley mock-model`: the offline model behind an OpenAI-compatible server."""

import asyncio
import errno
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer
import uvloop

from conversations.models.offline_server import serve
from producer.errors import UsageInvalid
from producer.terminal import say


def mock_model(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one and says which.")] = 8000,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    latency_ms: Annotated[float, typer.Option(min=0.0, help="How long each reply takes.")] = 0.0,
    turns: Annotated[
        int | None,
        typer.Option(min=1, help="Exactly so many model calls a conversation, one tool call in each but the last."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed, other replies and faults.")] = 0,
    rate_429: Annotated[float, typer.Option("--rate-429", min=0, max=1, help="Share of requests refused by 429.")] = 0,
    rate_500: Annotated[float, typer.Option("--rate-500", min=0, max=1, help="Share of requests that fail.")] = 0,
    rate_truncated: Annotated[float, typer.Option(min=0, max=1, help="Share of replies that break off.")] = 0,
    rate_malformed: Annotated[float, typer.Option(min=0, max=1, help="Share of replies that make no sense.")] = 0,
    retry_after_seconds: Annotated[float, typer.Option(min=0, help="What a 429 says in Retry-After.")] = 1.0,
    request_log: Annotated[Path | None, typer.Option(help="Write one JSON line a request to this file.")] = None,
    api_key: Annotated[
        str | None, typer.Option(envvar="PARLEY_MOCK_MODEL_API_KEY", help="Refuse requests without this key.")
    ] = None,
) -> None:
    """Serve a deterministic model at http://HOST:PORT/v1: tools are called as the request offers them."""
    serving = serve(
        host=host,
        port=port,
        latency_ms=latency_ms,
        turns=turns,
        seed=seed,
        rate_429=rate_429,
        rate_500=rate_500,
        rate_truncated=rate_truncated,
        rate_malformed=rate_malformed,
        retry_after_seconds=retry_after_seconds,
        request_log=request_log,
        api_key=api_key,
        ready=lambda taken: print(f"serving http://{host}:{taken}/v1", flush=True),  # noqa: T201 - scripts wait for it
    )
    try:
        uvloop.run(_until_told_to_stop(serving))
        say("stopped")
    except OSError as error:
        if error.errno not in {errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES}:
            raise
        raise UsageInvalid(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another --port or --host"
        ) from None


async def _until_told_to_stop(serving: Coroutine[Any, Any, None]) -> None:
    """Serve until SIGINT or SIGTERM, which reach the loop between two of its steps and never inside one."""
    task = asyncio.ensure_future(serving)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()
