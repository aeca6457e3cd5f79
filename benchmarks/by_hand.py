"""Workload W as one writes it by hand: AsyncOpenAI and a loop; nothing is stored, claimed or limited.

`python -m benchmarks.by_hand TRANSPORT BASE_URL CONVERSATIONS IN_FLIGHT` prints one JSON object.
"""

import asyncio
import json
import sys
import time
from typing import Any, Literal

from benchmarks.in_flight import cpu_seconds_of
from benchmarks.weather import TOOL, get_weather
from benchmarks.workload import MODEL_CALLS, SYSTEM, question

Transport = Literal["aiohttp", "httpx"]
_WARM_UP = 50
_TOOLS: Any = [{"type": "function", "function": TOOL}]


async def main(transport: str, base_url: str, conversations: int, in_flight: int) -> None:
    """Warm up, then measure."""
    import openai  # noqa: PLC0415 - takes seconds, and only this process needs it

    http_client = openai.DefaultAioHttpClient(timeout=60) if transport == "aiohttp" else None
    async with openai.AsyncOpenAI(
        base_url=base_url, api_key="none", max_retries=0, timeout=60, http_client=http_client
    ) as client:
        await cpu_seconds_of(lambda number: converse(client, number), count=_WARM_UP, in_flight=_WARM_UP)
        started = time.monotonic()
        seconds = await cpu_seconds_of(
            lambda number: converse(client, number), count=conversations, in_flight=in_flight
        )
        wall_seconds = time.monotonic() - started
    print(json.dumps({"cpu_ms": seconds * 1000 / conversations, "per_second": conversations / wall_seconds}))


async def converse(client: Any, number: int) -> None:
    """One conversation."""
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question(number)}]
    calls = 0
    while True:
        completion = await client.chat.completions.create(model="mock", messages=messages, tools=_TOOLS)
        calls += 1
        message = completion.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            result = get_weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
    if calls != MODEL_CALLS:
        raise RuntimeError(f"the model's stand-in did not play W: {calls} calls")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
