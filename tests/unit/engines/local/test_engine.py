"""The local engine: functions of a user's module."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from engines.configuration import ToolsConfiguration
from engines.engine import ToolEngine
from engines.errors import ConfigurationInvalid, SessionStateInvalid, ToolFailed
from engines.loading import load_registry
from engines.tool import ErrorType, Tool, ToolCall
from engines.wiring import build_engine
from tests.unit.engines import shop_functions
from tests.unit.engines.stage import no_speak

SHOP = "tests.unit.engines.shop_functions"


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


ITEM = schema(item={"type": "string"}, amount={"type": "integer"})
TOOLS = {
    "price": ITEM,
    "order": schema(item={}),
    "who": schema(),
    "leave": schema(),
    "meddle": schema(tags={"type": "array"}),
    "anything": schema(a={}),
    "search": schema(context={"type": "string"}),
    "block": schema(),
}


def build(tools: dict[str, Any] | None = None, namespaces: tuple[str, ...] = ("shop",), **settings: Any) -> ToolEngine:
    caching = settings.pop("caching", None)
    definitions = [Tool(name, parameters=parameters).to_dict() for name, parameters in (tools or TOOLS).items()]
    definitions = [{**each, "name": each["name"].removeprefix("default::")} for each in definitions]
    block = {
        "registry": [{"type": "inline", "namespace": name, "tools": definitions} for name in namespaces],
        "engines": {"code": {"type": "local", "module": SHOP, **settings}},
        "namespaces": {"shop": caching} if caching else {},
    }
    configuration = ToolsConfiguration.model_validate(block)
    registry = load_registry(configuration, folder=None, environment={})  # type: ignore[arg-type]  # No file is read.
    return build_engine(configuration, registry, speak_for=no_speak)


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name, "shop", arguments, "c")


@pytest.fixture
async def engine() -> AsyncIterator[ToolEngine]:
    engine = build()
    await engine.setup("s", auxdata={"user": "Ada"}, seed=9)
    yield engine
    await engine.teardown("s")
    await engine.close()


async def result_of(engine: ToolEngine, name: str, **arguments: Any) -> Any:
    (result,) = await engine.execute("s", [call(name, **arguments)])
    assert result.error is None
    return result.result


async def error_of(engine: ToolEngine, name: str, **arguments: Any) -> tuple[ErrorType | None, str | None]:
    (result,) = await engine.execute("s", [call(name, **arguments)])
    return result.error_type, result.error


async def test_plain_functions_run_in_the_engines_threads(engine: ToolEngine) -> None:
    answer = await result_of(engine, "price", item="tea", amount=2)
    assert answer["price"] == 10
    assert answer["thread"].startswith("local-tool")


@pytest.mark.parametrize("by_module", [True, False])
async def test_inline_functions_run_in_the_loop_itself(monkeypatch: pytest.MonkeyPatch, *, by_module: bool) -> None:
    if by_module:
        monkeypatch.setattr(shop_functions, "INLINE", True, raising=False)
    engine = build() if by_module else build(inline=True)
    await engine.setup("s")
    assert (await result_of(engine, "price", item="tea"))["thread"] == "MainThread"
    await engine.close()


async def test_e2_a_function_gets_its_context(engine: ToolEngine) -> None:
    answer = await result_of(engine, "who")
    assert (answer["user"], answer["tool"]) == ("Ada", "shop::who")
    assert isinstance(answer["seed"], int)


async def test_e2_sessions_and_namespaces_do_not_share_their_scratch() -> None:
    engine = build(namespaces=("shop", "other"))
    for session_id in ("s", "t"):
        await engine.setup(session_id)
    await engine.execute("s", [call("order", item="tea"), ToolCall("order", "other", {"item": "rope"})])
    (second,) = await engine.execute("t", [call("order", item="milk")])
    assert second.result == ["milk"]
    assert await engine.get_session_scratch("s") == {"code": {"shop": {"cart": ["tea"]}, "other": {"cart": ["rope"]}}}
    await engine.close()


async def test_a_parameter_of_the_tool_named_context_is_the_tools(engine: ToolEngine) -> None:
    assert await result_of(engine, "search", context="of words") == "of words"


async def test_a_function_may_take_any_arguments(engine: ToolEngine) -> None:
    assert await result_of(engine, "anything", a=1, b=2) == {"a": 1, "b": 2}


async def test_arguments_the_function_cannot_take_are_told_to_the_model(engine: ToolEngine) -> None:
    assert await error_of(engine, "price", item="tea", colour="green") == (
        ErrorType.validation,
        "invalid arguments: unknown colour; this tool takes: amount, item",
    )
    assert await error_of(engine, "price", amount=1) == (ErrorType.validation, "invalid arguments: missing item")


async def test_a_function_cannot_change_the_call_in_the_history(engine: ToolEngine) -> None:
    assert await result_of(engine, "meddle", tags=["a"]) == ["a", "meddled"]
    state = await engine.get_session_state("s")
    assert state is not None
    assert state["history"][0]["call"]["arguments"] == {"tags": ["a"]}


async def test_a_function_that_exits_ends_only_its_call(engine: ToolEngine) -> None:
    assert await error_of(engine, "leave") == (ErrorType.execution, "the function called sys.exit(3)")


async def test_a_function_that_hangs_in_its_thread_is_a_timeout() -> None:
    tools = {"block": TOOLS["block"]}
    engine = build(tools)
    toolset = engine.toolsets["shop"]
    assert toolset.defaults.timeout_seconds == 30
    quick = build_with_timeout(0.01)
    await quick.setup("s")
    try:
        assert (await error_of(quick, "block"))[0] is ErrorType.timeout
    finally:
        shop_functions.BLOCKED.set()
        await quick.close()
        await engine.close()


def build_with_timeout(seconds: float) -> ToolEngine:
    block = {
        "registry": [{"type": "inline", "namespace": "shop", "tools": [{"name": "block"}]}],
        "engines": {"code": {"type": "local", "module": SHOP}},
        "namespaces": {"shop": {"defaults": {"timeout_seconds": seconds}}},
    }
    configuration = ToolsConfiguration.model_validate(block)
    registry = load_registry(configuration, folder=None, environment={})  # type: ignore[arg-type]  # No file is read.
    return build_engine(configuration, registry, speak_for=no_speak)


async def test_setup_and_teardown_functions_stand_around_a_session() -> None:
    log: list[Any] = []
    engine = build(setup="open_shop", teardown="close_shop")
    await engine.setup("s", auxdata={"log": log})
    assert await result_of(engine, "order", item="tea") == ["welcome gift", "tea"]
    await engine.teardown("s")
    assert log == [("open", "s"), ("close", "s", ["welcome gift", "tea"])]
    await engine.close()


async def test_a_restored_scratch_stands_over_what_setup_puts_there() -> None:
    engine = build(setup="open_shop")
    await engine.setup("s", auxdata={"log": []})
    await engine.execute("s", [call("order", item="tea")])
    state = await engine.get_session_state("s")
    await engine.teardown("s")
    await engine.setup("s", auxdata={"log": []}, initial_state=state)
    assert await result_of(engine, "order", item="milk") == ["welcome gift", "tea", "milk"]
    await engine.close()


async def test_setup_and_teardown_run_for_the_namespaces_of_the_job_only() -> None:
    log: list[Any] = []
    engine = build(namespaces=("shop", "other"), setup="open_shop", teardown="close_shop")
    await engine.setup("s", auxdata={"log": log}, namespaces={"shop"})
    assert list((await engine.get_session_scratch("s"))["code"]) == ["shop"]
    await engine.teardown("s")
    assert [entry[0] for entry in log] == ["open", "close"]
    await engine.close()


async def test_a_setup_that_fails_leaves_no_session_and_says_why() -> None:
    engine = build(setup="closed_today")
    with pytest.raises(ToolFailed, match="setup of session 's' failed: RuntimeError: closed today"):
        await engine.setup("s")
    assert await engine.get_session_state("s") is None
    await engine.close()


async def test_a_cancelled_setup_leaves_no_session() -> None:
    engine = build(setup="never_ready")
    task = asyncio.create_task(engine.setup("s"))
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await engine.get_session_state("s") is None
    await engine.close()


async def test_a_scratch_that_is_no_json_is_refused_when_it_is_asked_for(engine: ToolEngine) -> None:
    await engine.execute("s", [call("order", item="tea")])
    child = engine._engines["code"]  # type: ignore[attr-defined]  # Only a user's function could put it there.
    child._sessions.get("s").scratch["shop"]["cart"].append(object())
    with pytest.raises(
        SessionStateInvalid, match="session 's': the scratch must be plain JSON: object has no JSON form"
    ):
        await engine.get_session_scratch("s")


async def test_a_tool_may_have_a_function_of_another_name() -> None:
    tools = {"under-scored": schema(text={"type": "string"})}
    for key in ("under-scored", "shop::under-scored"):
        engine = build(tools, functions={key: "under_scored"})
        await engine.setup("s")
        assert await result_of(engine, "under-scored", text="x") == "x"
        await engine.close()


@pytest.mark.parametrize(
    ("tools", "settings", "at", "cause"),
    [
        (
            None,
            {"module": "no.such.module"},
            "module",
            "module 'no.such.module' cannot be imported: ModuleNotFoundError",
        ),
        (
            {"prise": ITEM},
            {},
            "module",
            f"module '{SHOP}' has no function 'prise' for tool 'shop::prise'; did you mean 'price'",
        ),
        ({"PRICE": ITEM}, {}, "module", f"module '{SHOP}' has a int, not a function, 'PRICE'"),
        (
            {"price": schema(colour={})},
            {},
            "module",
            f"function {SHOP}.price does not take colour of tool 'shop::price'",
        ),
        (None, {"functions": {"price": "prise"}}, "functions", f"module '{SHOP}' has no function 'prise'"),
        (
            None,
            {"setup": "opn_shop"},
            "setup",
            f"module '{SHOP}' has no function 'opn_shop' for setup; did you mean 'open_shop'",
        ),
        (None, {"inlin": True}, "inlin", "unknown key 'inlin'; did you mean 'inline'"),
        (None, {"threads": 0}, "threads", "Input should be greater than or equal to 1"),
    ],
)
def test_what_is_missing_is_said_when_the_engine_is_built(
    tools: dict[str, Any] | None, settings: dict[str, Any], at: str, cause: str
) -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        build(tools, **settings)
    assert caught.value.at == ("engines", "code", at)
    assert caught.value.message.startswith(cause)


def test_a_module_that_breaks_on_import_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "broken_shop", None)  # How Python blocks an import.
    with pytest.raises(ConfigurationInvalid, match="module 'broken_shop' cannot be imported"):
        build(module="broken_shop")


async def test_a11_functions_that_ask_for_no_context_run_side_by_side() -> None:
    engine = build({"meet": schema(number={})})
    await engine.setup("s")
    results = await engine.execute("s", [call("meet", number=number) for number in range(3)])
    assert [result.result for result in results] == [0, 1, 2]
    await engine.teardown("s")
    await engine.close()


async def test_a11_functions_with_a_context_keep_their_order(engine: ToolEngine) -> None:
    batch = [call("order", item=item) if item != "-" else call("price", item="x") for item in "a-b-c"]
    results = await engine.execute("s", batch)
    assert [result.result for result in results[::2]] == [["a"], ["a", "b"], ["a", "b", "c"]]


async def test_only_functions_without_a_context_are_cached() -> None:
    read_only = {"price": {"read_only": True}, "who": {"read_only": True}}
    engine = build(TOOLS, caching={"cache": {}, "tools": read_only})
    for user in ("Ada", "Grace"):
        await engine.setup(user, auxdata={"user": user})
    for user in ("Ada", "Grace"):
        price, who = await engine.execute(user, [call("price", item="x"), call("who")])
        assert who.result["user"] == user
        assert price.metadata.get("cached", False) is (user == "Grace")
    await engine.close()


def test_a_stateful_toolset_depends_on_the_session_whatever_its_functions_ask_for() -> None:
    caching = {"cache": {}, "stateful": True, "tools": {"price": {"read_only": True}}}
    with pytest.raises(ConfigurationInvalid, match="nothing of 'shop' can be kept: what its tools say depends on"):
        build({"price": ITEM}, caching=caching)
