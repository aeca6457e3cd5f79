"""Conversations with a state of their own in a REST backend: begun, carried, made again, ended (F3, F37)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engines.errors import SessionLost, ToolFailed
from engines.rest.engine import RestToolEngine
from engines.tool import ErrorType, Tool
from tests.support.cart_backend import CartBackend
from tests.support.http_backend import HttpBackend, Received, Reply, http_backend
from tests.unit.engines.rest.rest_tools import NAMESPACE, Pauses, call, engine_of, opened, tool

TOOLS: list[Tool] = [
    tool("add", "POST", "/items", param_locations={"item": "body"}),
    tool("list", "GET", "/items"),
]
SESSION: dict[str, Any] = {
    "setup": {
        "path": "/sessions",
        "body": {"name": "{{ session_id }}"},
        "expect": 201,
        "capture": {"cart": "/data/id", "token": "header:X-Token"},
    },
    "send": {"header": {"X-Token": "{{ token }}"}},
    "teardown": {"method": "DELETE", "path": "/sessions/{{ cart }}"},
}


@asynccontextmanager
async def serving(carts: CartBackend) -> AsyncIterator[HttpBackend]:
    async with http_backend(carts.answer) as backend:
        yield backend


def shop(backend: HttpBackend, **session: Any) -> RestToolEngine:
    return engine_of(TOOLS, url=backend.url, sessions={NAMESPACE: {**SESSION, **session}})


async def added(engine: RestToolEngine, session_id: str, *items: str) -> Any:
    results = await engine.execute(session_id, [call("add", item=item) for item in items])
    return results[-1].result


async def kept_of(engine: RestToolEngine, session_id: str) -> dict[str, Any]:
    state = await engine.get_session_state(session_id)
    assert state is not None
    return state


async def test_a_conversation_has_a_state_of_its_own() -> None:
    carts = CartBackend()
    async with serving(carts) as backend, opened(shop(backend), "job.1") as engine:
        await engine.setup("job.2")
        assert await added(engine, "job.1", "a", "b") == {"items": ["a", "b"]}
        assert await added(engine, "job.2", "c") == {"items": ["c"]}
        assert [cart.name for cart in carts.carts.values()] == ["job.1", "job.2"]
        await engine.teardown("job.2")
        assert carts.ended == ["cart-2"]
    assert carts.ended == ["cart-2", "cart-1"]


async def test_hundreds_of_conversations_do_not_mix() -> None:
    carts = CartBackend()
    ids = [f"job.{number}" for number in range(200)]
    async with serving(carts) as backend, opened(shop(backend)) as engine:
        await asyncio.gather(*(engine.setup(each) for each in ids))
        listed = await asyncio.gather(*(added(engine, each, each, "x") for each in ids))
        assert listed == [{"items": [each, "x"]} for each in ids]
        await asyncio.gather(*(engine.teardown(each) for each in ids))
    assert len(carts.made) == len(carts.ended) == 201
    assert carts.carts == {}


async def test_calls_of_a_session_keep_their_order_within_a_batch() -> None:
    carts = CartBackend()
    async with serving(carts) as backend, opened(shop(backend)) as engine:
        letters = list("abcdefghij")
        assert await added(engine, "s", *letters) == {"items": letters}


async def test_sec_s8_what_the_session_carries_cannot_be_said_by_a_call() -> None:
    carts = CartBackend()
    tools = [tool("add", "POST", "/items", param_locations={"item": "body", "X-Token": "header"})]
    async with serving(carts) as backend:
        engine = engine_of(tools, url=backend.url, sessions={NAMESPACE: SESSION})
        async with opened(engine):
            await engine.setup("other")
            made = call("add", item="a", **{"X-Token": "token-of-cart-2"})
            assert (await engine.execute("s", [made]))[0].result == {"items": ["a"]}
            assert carts.carts["cart-2"].items == []
            await engine.teardown("other")


@pytest.mark.parametrize(
    ("send", "seen"),
    [
        ({"query": {"sid": "{{ cart }}"}}, lambda request: dict(request.query)["sid"]),
        ({"cookie": {"sid": "{{ cart }}"}}, lambda request: request.header("cookie").partition("sid=")[2]),
        ({"body": {"sid": "{{ cart }}"}}, lambda request: request.json["sid"]),
        ({"path": {"sid": "{{ cart }}"}}, lambda request: request.path.split("/")[2]),
    ],
)
async def test_captured_values_go_where_send_says(send: dict[str, Any], seen: Any) -> None:
    async def answer(request: Received) -> Reply:
        return Reply({"data": {"id": "ca/rt"}}, 201, {"X-Token": "t"})

    path = "/carts/{sid}/items" if "path" in send else "/items"
    tools = [tool("add", "POST", path, param_locations={"item": "body", "sid": "query"})]
    async with http_backend(answer) as backend:
        session = {**SESSION, "send": send, "teardown": None}
        engine = engine_of(tools, url=backend.url, sessions={NAMESPACE: session})
        async with opened(engine):
            await engine.execute("s", [call("add", item="a", **({} if "path" in send else {"sid": "mine"}))])
        found = seen(backend.last)
        assert found in {"ca/rt", "ca%2Frt", "ca"}
        if "path" in send:
            assert backend.last.raw_path == "/carts/ca%2Frt/items"


async def test_a_session_may_need_no_setup_request() -> None:
    session = {
        "send": {"header": {"X-Sandbox": "{{ session_id }}"}},
        "teardown": {"method": "DELETE", "path": "/sandboxes/{{ session_id }}"},
    }
    async with http_backend() as backend:
        async with opened(engine_of(TOOLS, url=backend.url, sessions={NAMESPACE: session}), "job/1") as engine:
            await engine.execute("job/1", [call("list")])
        assert [request.header("x-sandbox") for request in backend.received] == ["job/1", None]
        assert (backend.last.method, backend.last.raw_path) == ("DELETE", "/sandboxes/job%2F1")


# Setup that fails


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply({"error": "full"}, 503), 'no session for \'shop\': POST /sessions answered HTTP 503: {"error": "full"}'),
        (Reply({"data": {"id": "cart-1"}}, 200), "answered HTTP 200"),
        (Reply({"data": {}}, 201), "the session of 'shop' has no 'cart': the answer has nothing at '/data/id'"),
        (Reply({"data": {"id": ["x"]}}, 201), "is an object or a list in the answer"),
        (Reply(b"hello", 201), "the answer has nothing at '/data/id'"),
    ],
)
async def test_a_setup_that_fails_is_told_and_leaves_no_session(reply: Reply, told: str) -> None:
    carts = CartBackend(fault=lambda _: reply)
    async with serving(carts) as backend:
        engine = shop(backend)
        with pytest.raises(ToolFailed) as caught:
            await engine.setup("s")
        assert told in str(caught.value)
        assert await engine.get_session_state("s") is None
        await engine.close()


async def test_a_setup_without_an_answer_is_a_network_failure() -> None:
    async with http_backend() as backend:
        engine = engine_of(TOOLS, url=backend.url, sessions={NAMESPACE: SESSION})
    with pytest.raises(ToolFailed) as caught:
        await engine.setup("s")
    assert caught.value.error_type is ErrorType.network
    await engine.close()


async def test_e22_a_second_setup_that_fails_ends_the_first() -> None:
    carts = CartBackend(fault=lambda request: Reply({}, 500) if request.path == "/full" else None)
    async with serving(carts) as backend:
        sessions = {NAMESPACE: SESSION, "full": {"setup": {"path": "/full"}}}
        engine = engine_of(TOOLS, url=backend.url, sessions=sessions)
        with pytest.raises(ToolFailed, match="no session for 'full'"):
            await engine.setup("s")
        await engine.close()
    assert carts.made == carts.ended == ["cart-1"]


async def test_a_setup_whose_outcome_is_not_known_is_ended_by_the_sessions_id() -> None:
    ended = []

    async def answer(request: Received) -> Reply | None:
        if request.method == "POST":
            return None  # made, perhaps, and never told
        ended.append(request.path)
        return Reply({}, 404)

    session = {
        "setup": {"path": "/sessions", "body": {"id": "{{ session_id }}"}},
        "teardown": {"method": "DELETE", "path": "/sessions/{{ session_id }}"},
    }
    async with http_backend(answer) as backend:
        engine = engine_of(TOOLS, url=backend.url, sessions={NAMESPACE: session})
        with pytest.raises(ToolFailed):
            await engine.setup("job.1")
        await engine.close()
    assert ended == ["/sessions/job.1"]


async def test_sec_s11_a_setups_secrets_are_in_no_message() -> None:
    async def answer(request: Received) -> Reply:
        return Reply({"said": dict(request.headers)}, 500)

    setup = {"path": "/sessions", "headers": {"X-Admin-Token": "admin-token-1"}}
    async with http_backend(answer) as backend:
        engine = engine_of(TOOLS, url=backend.url, sessions={NAMESPACE: {"setup": setup}})
        with pytest.raises(ToolFailed) as caught:
            await engine.setup("s")
        assert backend.last.header("x-admin-token") == "admin-token-1"
        assert "admin-token-1" not in str(caught.value)
        await engine.close()


# Another attempt


async def continued(carts: CartBackend, *, tear_down_first: bool, **session: Any) -> dict[str, Any]:
    """Add `a`, list, add `b`, and go on in another process; return what is listed there and what was made."""
    async with serving(carts) as backend:
        first, second = shop(backend, **session), shop(backend, **session)
        await first.setup("job.1")
        for made in (call("add", item="a"), call("list"), call("add", item="refused"), call("add", item="b")):
            await first.execute("job.1", [made])
        state = await kept_of(first, "job.1")
        if tear_down_first:
            await first.teardown("job.1", keeping=first.takes_up({NAMESPACE}))
        await first.close()
        try:
            await second.setup("job.2", initial_state=state)
            (result,) = await second.execute("job.2", [call("list")])
            again = await kept_of(second, "job.2")
            await second.teardown("job.2")
            return {"listed": result.result, "again": again, "requests": backend.received}
        finally:
            await second.close()


async def test_f3_a_later_attempt_makes_the_state_again_in_a_session_of_its_own() -> None:
    carts = CartBackend()
    outcome = await continued(carts, tear_down_first=True)
    assert outcome["listed"] == {"items": ["a", "b"]}
    assert carts.made == carts.ended == ["cart-1", "cart-2"]
    assert outcome["again"]["scratch"]["sessions"][NAMESPACE]["cart"] == "cart-2"
    assert len(outcome["again"]["history"]) == 5


async def test_d11_a_fork_has_a_state_of_its_own_on_the_backend_too() -> None:
    carts = CartBackend()
    async with serving(carts) as backend, opened(shop(backend), "parent") as engine:
        await added(engine, "parent", "a")
        await engine.setup("fork", initial_state=await kept_of(engine, "parent"))
        assert await added(engine, "fork", "f") == {"items": ["a", "f"]}
        assert await added(engine, "parent", "p") == {"items": ["a", "p"]}
        await engine.teardown("fork")
    assert carts.carts == {}


async def test_f3_a_fresh_session_starts_without_what_was_done() -> None:
    outcome = await continued(CartBackend(), tear_down_first=True, resume="fresh")
    assert outcome["listed"] == {"items": []}


async def test_f3_a_session_that_is_reused_is_the_one_that_was_there() -> None:
    carts = CartBackend()
    outcome = await continued(carts, tear_down_first=True, resume="reuse")
    assert outcome["listed"] == {"items": ["a", "b"]}
    assert carts.made == carts.ended == ["cart-1"]
    posts = [request for request in outcome["requests"] if request.method == "POST"]
    assert len(posts) == 4


@pytest.mark.parametrize("resume", ["fail", "reuse"])
async def test_f3_a_state_that_must_not_be_made_again_is_lost(resume: str) -> None:
    carts = CartBackend()
    async with serving(carts) as backend, opened(shop(backend, resume=resume), "job.1") as engine:
        await added(engine, "job.1", "a")
        history = (await kept_of(engine, "job.1"))["history"]
        with pytest.raises(SessionLost, match=f"its sessions say resume: {resume}"):
            await engine.setup("job.2", initial_state={"history": history})
        assert carts.made == ["cart-1"]


async def test_f3_an_attempt_that_changed_nothing_has_lost_nothing() -> None:
    carts = CartBackend()
    async with serving(carts) as backend, opened(shop(backend, resume="fail"), "job.1") as engine:
        await engine.execute("job.1", [call("list")])
        await engine.setup("job.2", initial_state=await kept_of(engine, "job.1"))
        await engine.teardown("job.2")


async def test_f3_a_call_that_worked_before_and_not_now_means_that_the_state_is_lost() -> None:
    carts = CartBackend()
    async with serving(carts) as backend, opened(shop(backend), "job.1") as engine:
        await added(engine, "job.1", "a")
        state = await kept_of(engine, "job.1")
        carts.fault = lambda request: Reply({}, 409) if request.path == "/items" else None
        with pytest.raises(SessionLost, match="shop::add failed when it was made again: HTTP 409"):
            await engine.setup("job.2", initial_state=state)
        assert carts.made == ["cart-1", "cart-2"]
        assert carts.ended == ["cart-2"]


async def test_f3_schema_defaults_are_part_of_a_call_that_is_made_again() -> None:
    carts = CartBackend()
    schema = {"type": "object", "properties": {"item": {"type": "string", "default": "usual"}}}
    described = tool("add", "POST", "/items", param_locations={"item": "body"})
    adding = Tool("add", NAMESPACE, parameters=schema, metadata=described.metadata)
    async with serving(carts) as backend:
        engine = engine_of([adding], url=backend.url, sessions={NAMESPACE: SESSION})
        async with opened(engine):
            entry = {"call": call("add").to_dict(), "result": {"id": "c", "name": "shop::add", "result": {}}}
            await engine.setup("job.2", initial_state={"history": [entry]})
            assert carts.carts["cart-2"].items == ["usual"]
            await engine.teardown("job.2")


async def test_f3_keys_of_calls_that_are_made_again_differ_from_all_others() -> None:
    carts = CartBackend()
    async with serving(carts) as backend:
        engine = engine_of(TOOLS, url=backend.url, sessions={NAMESPACE: SESSION}, idempotency_key={})
        async with opened(engine, "job.1"):
            await added(engine, "job.1", "a", "a")
            await engine.setup("job.2", initial_state=await kept_of(engine, "job.1"))
            await added(engine, "job.2", "a")
            await engine.teardown("job.2")
        keys = [request.header("idempotency-key") for request in backend.received if request.path == "/items"]
    assert len(keys) == len(set(keys)) == 5


async def test_a_backend_that_forgot_its_session_ends_the_attempt() -> None:
    carts = CartBackend()
    async with serving(carts) as backend, opened(shop(backend, lost_statuses=[410])) as engine:
        await added(engine, "s", "a")
        carts.carts.clear()
        with pytest.raises(SessionLost, match="a call was answered by HTTP 410"):
            await added(engine, "s", "b")


# Sessions that end: rule F37


async def test_f37_a_session_is_reaped_by_its_scratch_alone() -> None:
    carts = CartBackend()
    async with serving(carts) as backend:
        dead, living = shop(backend), shop(backend)
        assert living.leaves_behind({NAMESPACE})
        assert not living.leaves_behind({"elsewhere"})
        await dead.setup("job.1")
        scratch = await dead.get_session_scratch("job.1")
        await dead.close()
        for _ in range(2):  # the second finds nothing, which is as good
            await living.reap("job.1", scratch=scratch, namespaces={NAMESPACE})
        await living.close()
    assert carts.ended == ["cart-1"]


async def test_f37_what_is_left_and_what_is_taken_up_depends_on_the_teardown() -> None:
    async with http_backend() as backend:
        ended, reused = shop(backend), shop(backend, resume="reuse")
        unended = shop(backend, resume="reuse", teardown=None)
        engines = (ended, reused, unended)
        assert [engine.leaves_behind({NAMESPACE, "other"}) for engine in engines] == [True, True, False]
        assert [engine.takes_up({NAMESPACE, "other"}) for engine in engines] == [set(), {NAMESPACE}, set()]
        assert reused.takes_up({"other"}) == set()


async def test_f37_a_session_that_nobody_set_up_is_reaped_by_its_id_or_not_at_all() -> None:
    async with http_backend() as backend:
        by_handle = shop(backend)
        await by_handle.reap("job.1", scratch={}, namespaces={NAMESPACE})
        assert backend.received == []
        await by_handle.close()
        session = {"teardown": {"method": "DELETE", "path": "/s/{{ session_id }}"}}
        by_id = engine_of(TOOLS, url=backend.url, sessions={NAMESPACE: session})
        await by_id.reap("job.1", scratch={}, namespaces={NAMESPACE})
        await by_id.reap("job.2", scratch={}, namespaces={"elsewhere"})
        assert [request.path for request in backend.received] == ["/s/job.1"]
        await by_id.close()


async def test_f37_a_teardown_is_tried_again_and_its_failure_told() -> None:
    carts = CartBackend()
    failing = [Reply({}, 503), Reply({}, 500)]
    async with serving(carts) as backend, opened(shop(backend)) as engine:
        engine._conversations._pause = Pauses()
        carts.fault = lambda request: failing.pop() if request.method == "DELETE" and failing else None
        await engine.teardown("s")
        assert carts.ended == ["cart-1"]
        await engine.setup("t")
        carts.fault = lambda request: Reply({"error": "stuck"}, 500) if request.method == "DELETE" else None
        with pytest.raises(ToolFailed, match="no teardown for 'shop': DELETE /sessions/cart-2 answered HTTP 500"):
            await engine.teardown("t")
        assert await engine.get_session_state("t") is None


@pytest.mark.parametrize("status", [404, 410])
async def test_f37_a_session_that_is_gone_is_torn_down(status: int) -> None:
    carts = CartBackend()
    async with serving(carts) as backend, opened(shop(backend)):
        carts.fault = lambda request: Reply({}, status) if request.method == "DELETE" else None


async def test_f37_one_teardown_that_fails_does_not_keep_the_others() -> None:
    ended = []

    async def answer(request: Received) -> Reply:
        ended.append(request.path)
        return Reply({}, 500 if request.path == "/stuck" else 200)

    sessions = {
        NAMESPACE: {"teardown": {"method": "DELETE", "path": "/stuck"}},
        "other": {"teardown": {"method": "DELETE", "path": "/other"}},
    }
    async with http_backend(answer) as backend:
        engine = engine_of(TOOLS, url=backend.url, sessions=sessions)
        engine._conversations._pause = Pauses()
        await engine.setup("s")
        with pytest.raises(ToolFailed, match="/stuck"):
            await engine.teardown("s")
        await engine.close()
    assert ended == ["/stuck", "/stuck", "/stuck", "/other"]


async def test_f37_a_teardown_that_hangs_is_left_at_its_deadline() -> None:
    async def answer(request: Received) -> Reply:
        await asyncio.Event().wait()
        return Reply({})

    session = {"teardown": {"method": "DELETE", "path": "/s", "timeout": 0.02}}
    async with http_backend(answer) as backend:
        engine = engine_of(TOOLS, url=backend.url, sessions={NAMESPACE: session})
        engine._conversations._pause = Pauses()
        await engine.setup("s")
        with pytest.raises(ToolFailed, match=r"no complete answer within 0\.02 s"):
            await engine.teardown("s")
        await engine.close()
