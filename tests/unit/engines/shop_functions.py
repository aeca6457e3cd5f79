"""A module of local tools as a user would write it: plain and async functions, a scratch, setup and teardown."""

import asyncio
import sys
import threading
from typing import Any

from engines.local.context import Context

PRICE = 5


def price(item: str, amount: int = 1) -> dict[str, Any]:
    return {"item": item, "price": PRICE * amount, "thread": threading.current_thread().name}


async def order(item: str, context: Context) -> list[str]:
    cart: list[str] = context.namespace.setdefault("cart", [])
    cart.append(item)
    return cart


async def who(context: Context) -> dict[str, Any]:
    assert context.tool is not None
    return {"user": context.auxdata.get("user"), "tool": context.tool.qualified_name, "seed": context.seed}


def leave() -> None:
    sys.exit(3)


def meddle(tags: list[str]) -> list[str]:
    tags.append("meddled")
    return tags


def anything(**arguments: Any) -> dict[str, Any]:
    return arguments


def search(context: str) -> str:
    return context


def under_scored(text: str) -> str:
    return text


def block(event: Any = None) -> None:
    """Wait in a thread for the event that the test holds."""
    BLOCKED.wait(20)


BLOCKED = threading.Event()


def meet(number: int) -> int:
    """Go on when three are here."""
    MEETING.wait(20)
    return number


MEETING = threading.Barrier(3)


async def open_shop(session_id: str, context: Context) -> None:
    context.namespace["opened"] = session_id
    context.namespace["cart"] = ["welcome gift"]
    context.auxdata["log"].append(("open", session_id))


def close_shop(session_id: str, context: Context) -> None:
    context.auxdata["log"].append(("close", session_id, list(context.namespace["cart"])))


async def closed_today(session_id: str, context: Context) -> None:
    message = "closed today"
    raise RuntimeError(message)


async def never_ready(session_id: str, context: Context) -> None:
    await asyncio.Event().wait()
