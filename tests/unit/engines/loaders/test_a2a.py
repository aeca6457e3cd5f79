"""An agent's card becomes tools."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from engines.errors import ConfigurationInvalid
from engines.loaders.a2a import load
from engines.loaders.entries import Surroundings
from engines.tool import Tool
from tests.support.a2a_server import a2a_server, skill
from tests.support.http_backend import Received, Reply, http_backend


async def loaded(url: str, **more: Any) -> list[Tool]:
    entry = {"type": "a2a", "url": url, "namespace": "agency", **more}
    return await asyncio.to_thread(load, entry, Surroundings(("registry", 0), Path(), {}))


async def problem(url: str, **more: Any) -> str:
    with pytest.raises(ConfigurationInvalid) as caught:
        await loaded(url, **more)
    return str(caught.value)


async def test_u1_each_skill_of_a_card_is_a_tool() -> None:
    told = skill("find hotel", "Finds one.", examples=["a room in Lisbon"])
    async with a2a_server(told, skill("book", input_modes=["text/plain", "application/json"])) as agency:
        find, book = await loaded(agency.url)
    assert (find.qualified_name, book.qualified_name) == ("agency::find_hotel", "agency::book")
    assert find.description == "Find Hotel: Finds one.\nExamples: a room in Lisbon"
    assert list(find.parameters["properties"]) == ["message"]
    assert list(book.parameters["properties"]) == ["message", "data"]
    assert (find.metadata["a2a_url"], find.metadata["a2a_skill"]) == (agency.url, "find hotel")


async def test_skills_may_be_chosen_and_a_wrong_one_is_told() -> None:
    async with a2a_server(skill("find"), skill("book")) as agency:
        assert [tool.name for tool in await loaded(agency.url, skills=["book"])] == ["book"]
        assert "the agent has no skill 'bok'; it has: 'find', 'book'" in await problem(agency.url, skills=["bok"])


async def test_the_cards_own_url_may_be_given() -> None:
    async with a2a_server() as agency:
        assert len(await loaded(f"{agency.url}/.well-known/agent-card.json")) == 1


async def test_sec_s9_what_a_card_says_is_made_fit_to_be_shown() -> None:
    async with a2a_server(skill("echo", "\x1b[31mred\u202e" + "x" * 10_000)) as agency:
        (tool,) = await loaded(agency.url)
    assert tool.description.startswith("Echo: [31mred")
    assert len(tool.description) == 4096


async def test_an_old_card_of_version_0_3_is_read_too() -> None:
    card = {
        "name": "old",
        "description": "",
        "version": "1",
        "protocolVersion": "0.3.0",
        "url": "http://127.0.0.1/rpc",
        "capabilities": {},
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
        "skills": [{"id": "s", "name": "S", "description": "d", "tags": []}],
    }

    async def answer(_request: Received) -> Reply:
        return Reply(card)

    async with http_backend(answer) as backend:
        assert [tool.name for tool in await loaded(backend.url)] == ["s"]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply({"no": "card"}), "the agent's card names no skills"),
        (Reply(b"<html>"), "the agent card cannot be read"),
        (Reply([1]), "the agent card cannot be read"),
        (Reply({"skills": 7}), "the agent card cannot be read"),
        (Reply({}, 404), "HTTP 404 instead of an agent card"),
    ],
)
async def test_a_card_that_cannot_be_read_is_told(reply: Reply, said: str) -> None:
    async def answer(_request: Received) -> Reply:
        return reply

    async with http_backend(answer) as backend:
        told = await problem(backend.url)
    assert told.startswith("tools.registry[0].url: ")
    assert said in told


async def test_nobody_there_is_told() -> None:
    async with a2a_server() as agency:
        pass
    assert "cannot read this agent's card" in await problem(agency.url)


async def test_without_the_extra_the_entry_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "engines.a2a.card", None)
    assert "pip install 'parley[a2a]'" in await problem("http://127.0.0.1:1")


async def test_the_cards_secret_is_not_kept_in_the_tool() -> None:
    async with a2a_server(secret="hush") as agency:
        (tool,) = await loaded(agency.url, bearer_token="hush")
        assert "hush" not in str(tool.to_dict())
        assert "HTTP 401" in await problem(agency.url)
