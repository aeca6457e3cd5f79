"""Which tools are like each other."""

from typing import Any

from engines.enrichments.embeddings import Embeddings
from engines.enrichments.encoders import LexicalEncoder
from engines.enrichments.enrichment import Material
from engines.enrichments.neighbors import Neighbors
from engines.tool import Tool
from tests.unit.engines.enrichments.materials import an_object, shop_tools


async def near(tools: list[Tool], **settings: int) -> dict[str, list[list[Any]]]:
    material = Material(tools)
    await Embeddings(LexicalEncoder()).enrich(material)
    await Neighbors(**settings).enrich(material)
    found: dict[str, list[list[Any]]] = material.artifacts["neighbors"]["near"]
    return found


async def test_d77_the_nearest_comes_first_and_a_tool_is_no_neighbor_of_its_own() -> None:
    found = await near(shop_tools())
    assert next(name for name, _ in found["shop::cancel_order"]) == "shop::list_orders"
    assert all(name not in {other for other, _ in others} for name, others in found.items())
    assert found["sky::tell_weather"] == []


async def test_d78_each_namespace_gives_at_most_so_many_neighbors() -> None:
    tools = [Tool(f"t{number}", namespace, "orders", an_object()) for number in range(4) for namespace in "ab"]
    found = await near(tools, max_neighbors=2)
    assert sorted(name for name, _ in found["a::t0"]) == ["a::t1", "a::t2", "b::t0", "b::t1"]


async def test_overloads_are_one_tool() -> None:
    overload = Tool("cancel_order", "shop", "Cancel it by name", an_object(name={"type": "string"}))
    assert (await near([*shop_tools(), overload])).keys() == (await near(shop_tools())).keys()
