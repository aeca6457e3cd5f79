"""The async store: four calls at once, none of them on the loop."""

import asyncio
import threading
from pathlib import Path

from results.store import AsyncStore, open_store


async def test_a_call_that_blocks_leaves_the_loop_free(tmp_path: Path) -> None:
    release = threading.Event()
    async with AsyncStore(open_store(str(tmp_path))) as store:
        blocked = [asyncio.create_task(store.in_thread(release.wait, 30)) for _ in range(4)]
        waiting = asyncio.create_task(store.put("a", b"1"))
        for _ in range(20):
            await asyncio.sleep(0)  # the loop turns while all four threads block
        assert not waiting.done()
        release.set()
        assert await asyncio.gather(*blocked) == [True] * 4
        await waiting
        assert await store.get("a") == b"1"


async def test_closing_does_not_wait_for_a_call_that_hangs(tmp_path: Path) -> None:
    release = threading.Event()
    store = AsyncStore(open_store(str(tmp_path)), threads=1)
    begun = threading.Event()

    def hang() -> None:
        begun.set()
        release.wait(30)

    hanging = asyncio.create_task(store.in_thread(hang))
    await asyncio.to_thread(begun.wait, 30)
    await store.close()
    assert not hanging.done()
    release.set()
    await hanging
