"""One client per process, loop and kind of connection; given back with its last holder."""

import asyncio
from typing import Any

from conversations.models.connections import _POOLS, ConnectionKind, release_client, take_client
from conversations.models.settings import ModelSettings


def kind(**settings: Any) -> ConnectionKind:
    return ConnectionKind.of(ModelSettings.model_validate({"provider": "openai", "model": "m"} | settings))


async def test_models_of_one_kind_share_a_client() -> None:
    first, second = await take_client(kind(api_key="a")), await take_client(kind(model="n", api_key="b"))
    other = await take_client(kind(verify_tls=False))

    assert first is second
    assert other is not first
    for each in (kind(), kind(), kind(verify_tls=False)):
        await release_client(each)
    assert not _POOLS[asyncio.get_running_loop()].clients


async def test_taken_at_the_same_time_it_is_still_one() -> None:
    clients = await asyncio.gather(*(take_client(kind()) for _ in range(20)))

    assert len(set(map(id, clients))) == 1
    for _ in clients:
        await release_client(kind())


async def test_the_last_holder_closes_it_and_the_next_gets_a_new_one() -> None:
    first = await take_client(kind())
    await release_client(kind())
    second = await take_client(kind())

    assert second is not first
    await release_client(kind())


def test_each_loop_has_its_own() -> None:
    async def taken() -> object:
        client = await take_client(kind())
        await release_client(kind())
        return client

    assert asyncio.run(taken()) is not asyncio.run(taken())
