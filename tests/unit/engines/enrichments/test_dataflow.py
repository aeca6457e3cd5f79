"""Which tool feeds which."""

from typing import Any

from engines.enrichments.dataflow import Dataflow
from engines.enrichments.encoders import LexicalEncoder
from engines.enrichments.enrichment import Material
from engines.tool import Tool
from tests.unit.engines.enrichments.materials import TEXT, an_object, shop_tools


async def flow_of(tools: list[Tool], **settings: Any) -> dict[str, Any]:
    material = Material(tools)
    await Dataflow(LexicalEncoder(), **settings).enrich(material)
    flow: dict[str, Any] = material.artifacts["dataflow"]
    return flow


async def test_d77_an_output_leads_to_the_inputs_that_mean_the_same() -> None:
    flow = await flow_of(shop_tools(), min_score=0.5)
    assert flow["out"] == {
        "shop::find_customer": [["shop::list_orders", 1.0, [["customer_id", "customer_id", 1.0]]]],
        "shop::list_orders": [["shop::cancel_order", 1.0, [["order_id", "order_id", 1.0]]]],
    }
    assert {name: [edge[:2] for edge in edges] for name, edges in flow["in"].items()} == {
        "shop::list_orders": [["shop::find_customer", 1.0]],
        "shop::cancel_order": [["shop::list_orders", 1.0]],
    }


async def test_d78_types_scale_the_score_and_rule_pairs_out() -> None:
    number = {"type": "integer"}
    tools = [
        Tool("a", "n", "", an_object(), an_object(amount=number, tags={"type": "array"})),
        Tool("b", "n", "", an_object(amount={"type": "number"})),
        Tool("c", "n", "", an_object(tags=TEXT)),
    ]
    assert (await flow_of(tools))["out"] == {"n::a": [["n::b", 0.8, [["amount", "amount", 0.8]]]]}


async def test_d78_at_most_so_many_neighbors_are_kept_for_each_namespace() -> None:
    source = Tool("source", "n", "", an_object(), an_object(order_id=TEXT))
    sinks = [Tool(f"t{number}", namespace, "", an_object(order_id=TEXT)) for number in range(15) for namespace in "ab"]
    edges = (await flow_of([source, *sinks]))["out"]["n::source"]
    assert len(edges) == 20
    assert [name for name, *_ in edges].count("a::t0") == 1
    assert len((await flow_of([source, *sinks], max_neighbors=2))["out"]["n::source"]) == 4


async def test_a_tool_does_not_feed_itself_and_overloads_are_one_tool() -> None:
    own = Tool("next_page", "n", "", an_object(page=TEXT), an_object(page=TEXT))
    other = Tool("next_page", "n", "", an_object(page=TEXT, size=TEXT), an_object(page=TEXT))
    assert await flow_of([own, other]) == {"out": {}, "in": {}}


async def test_a_name_that_says_little_takes_what_its_tool_is_about() -> None:
    tools = [
        Tool("get_order", "n", "", an_object(), an_object(id=TEXT)),
        Tool("get_user", "n", "", an_object(), an_object(id=TEXT)),
        Tool("cancel_order", "n", "", an_object(order_id=TEXT)),
    ]
    found = (await flow_of(tools))["out"]
    assert found["n::get_order"][0][:2] == ["n::cancel_order", 1.0]
    assert found["n::get_user"][0][1] < 0.6


async def test_local_references_are_followed() -> None:
    shared = {"$defs": {"order": {"type": "string", "description": "what was ordered"}}, "type": "object"}
    plain = {"type": "string", "description": "what was ordered"}
    tools = [
        Tool("a", "n", "", an_object(), {**shared, "properties": {"order": {"$ref": "#/$defs/order"}}}),
        Tool("b", "n", "", {**shared, "allOf": [{"properties": {"order": {"$ref": "#/$defs/order"}}}]}),
        Tool("c", "n", "", an_object(order=plain)),
        Tool("d", "n", "", an_object(order={**plain, "type": "number"})),
    ]
    pairs = [["order", "order", 1.0]]
    assert (await flow_of(tools))["out"] == {"n::a": [["n::b", 1.0, pairs], ["n::c", 1.0, pairs]]}


async def test_tools_without_outputs_have_no_flow() -> None:
    assert await flow_of([Tool("a", "n", "", an_object(x=TEXT))]) == {"out": {}, "in": {}}
    assert await flow_of([]) == {"out": {}, "in": {}}
