"""Tools that feed each other, and a model that is asked about them."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from engines.enrichments.enrichment import OpenSpeak
from engines.plain import JSONObject
from engines.speak import Speak, Utterance
from engines.tool import Tool

TEXT, NUMBER = {"type": "string"}, {"type": "number"}


def an_object(**properties: Any) -> JSONObject:
    """Return the schema of an object with these properties."""
    return {"type": "object", "properties": properties}


def shop_tools() -> list[Tool]:
    """Return four tools of a shop, three of which say what they return."""
    order = {"type": "string", "description": "The id of an order"}
    customer = {"type": "string", "description": "The id of a customer"}
    return [
        Tool("find_customer", "shop", "Find a customer", an_object(name=TEXT), an_object(customer_id=customer)),
        Tool("list_orders", "shop", "List orders", an_object(customer_id=customer), an_object(order_id=order)),
        Tool("cancel_order", "shop", "Cancel an order", an_object(order_id=order), an_object(refund=NUMBER)),
        Tool("tell_weather", "sky", "Tell the weather", an_object(city=TEXT)),
    ]


class AnsweringSpeak:
    """A model whose answers are a function of the tool that it is asked about."""

    def __init__(self, answer: Callable[[str, int], str], *, model_id: str = "scripted") -> None:
        self.model_id = model_id
        self.asked: list[str] = []
        self._answer = answer

    async def __call__(
        self, messages: list[JSONObject], *, response_format: JSONObject, candidates: int, seed: int, session_id: str
    ) -> list[Utterance]:
        name = json.loads(messages[-1]["content"].split("Tool specification:\n")[1])["name"]
        self.asked.append(name)
        return [Utterance(self._answer(name, self.asked.count(name)), None)]


def opening(speak: Speak) -> OpenSpeak:
    """Return what opens this model, whatever the configuration."""

    @asynccontextmanager
    async def opened(lm_config: JSONObject) -> AsyncIterator[Speak]:
        if lm_config.get("type") == "broken":
            message = "no such model"
            raise ValueError(message)
        yield speak

    return opened
