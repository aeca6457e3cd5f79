"""A stateful REST backend for tests: a cart for each session, which `DELETE` ends; it keeps count of both."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.http_backend import Received, Reply

Fault = Callable[[Received], Reply | None]


@dataclass
class Cart:
    """One session: its items, and the token that every call of it must carry."""

    token: str
    name: str
    items: list[Any] = field(default_factory=list)


@dataclass
class CartBackend:
    """`fault` may answer in its place; `made` and `ended` hold the ids of sessions in order."""

    fault: Fault = lambda _: None
    carts: dict[str, Cart] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    async def answer(self, request: Received) -> Reply:
        """`POST /sessions`, `DELETE /sessions/{id}`, `POST /items`, `GET /items`."""
        instead = self.fault(request)
        if instead is not None:
            return instead
        match request.method, request.path.split("/")[1:]:
            case "POST", ["sessions"]:
                return self._begin(request)
            case "DELETE", ["sessions", cart_id]:
                if self.carts.pop(cart_id, None) is None:
                    return Reply({"error": "no such session"}, 404)
                self.ended.append(cart_id)
                return Reply({})
            case method, ["items"]:
                return self._items(method, request)
            case _:
                return Reply({"error": "no such path"}, 404)

    def _begin(self, request: Received) -> Reply:
        cart_id = f"cart-{len(self.made) + 1}"
        self.carts[cart_id] = Cart(f"token-of-{cart_id}", request.json["name"])
        self.made.append(cart_id)
        return Reply({"data": {"id": cart_id}}, 201, {"X-Token": f"token-of-{cart_id}"})

    def _items(self, method: str, request: Received) -> Reply:
        cart = next((each for each in self.carts.values() if each.token == request.header("x-token")), None)
        if cart is None:
            return Reply({"error": "who are you?"}, 410)
        if method == "POST":
            if request.json["item"] == "refused":
                return Reply({"error": "not that"}, 409)
            cart.items.append(request.json["item"])
        return Reply({"items": cart.items})
