"""A process that writes records until it is killed, and says which of them counted as written."""

import asyncio
import sys

from results.shards import ShardWriter
from results.store import AsyncStore, open_store
from tests.unit.results.made_records import made_line


async def main(url: str, attempt: int) -> None:
    async with AsyncStore(open_store(url)) as store:
        writer = ShardWriter(store, "run", writer="killed", linger_seconds=0.002, max_records=20)

        async def write_all(first: int) -> None:
            for index in range(first, 1 << 30, 50):
                await writer.write(*made_line(index, attempt=attempt))
                print(index, flush=True)

        await asyncio.gather(*(write_all(first) for first in range(50)))


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
