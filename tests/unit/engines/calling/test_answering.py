"""What stands around a call: old answers in place of new ones, faults with a kind's own words."""

from typing import Any

from engines.calling.faults import ErrorCategory
from engines.engine import ToolEngine
from engines.session import Session
from engines.tool import ErrorType, Tool, ToolCall, ToolResult
from engines.toolset import Toolset

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"default": "celsius"}}}


class Counting(ToolEngine):
    """Answers with how often it was asked."""

    def __init__(self, tool: Tool, *faults: str) -> None:
        categories = [ErrorCategory(type=each, probability=1) for each in faults]
        super().__init__([Toolset(tool.namespace, None, (tool,))], error_categories=categories)
        self.asked: list[dict[str, Any]] = []

    async def _call(self, session: Session, call: ToolCall, tool: Tool) -> Any:
        self.asked.append(call.arguments)
        return len(self.asked)


class Searching(Counting):
    """Has its own words for faults."""

    def _faulty_result(self, category: ErrorCategory, call: ToolCall) -> ToolResult:
        return ToolResult.failed(call, ErrorType.execution, f"Simulated error: {category.type}", injected=category.type)


CALL = ToolCall("read", "w", {"city": "Rome"}, "c")


async def test_a_writer_is_never_told_an_old_answer() -> None:
    for metadata, asked in (({"read_only": False}, 2), ({}, 1), ({"read_only": True}, 1)):
        engine = Counting(Tool("read", "w", parameters=PARAMETERS, metadata=metadata), "stale_result")
        await engine.setup("s")
        await engine.execute("s", [CALL])
        await engine.execute("s", [CALL])
        assert len(engine.asked) == asked


async def test_d36_an_old_answer_is_found_in_a_history_that_knows_no_schema_defaults() -> None:
    engine = Counting(Tool("read", "w", parameters=PARAMETERS), "stale_result")
    restored = {"history": [{"call": CALL.to_dict(), "result": ToolResult("c", "w::read", "old").to_dict()}]}
    await engine.setup("s", initial_state=restored)
    (result,) = await engine.execute("s", [CALL])
    assert (result.result, engine.asked) == ("old", [])


async def test_d34_a_kind_of_engine_has_its_own_words_for_faults() -> None:
    engine = Searching(Tool("read", "w"), "index_not_found")
    await engine.setup("s")
    (result,) = await engine.execute("s", [CALL])
    assert (result.error, result.metadata) == (
        "Simulated error: index_not_found",
        {"injected": "index_not_found"},
    )


async def test_d34_partial_and_stale_results_are_the_tools_own_on_every_kind() -> None:
    engine = Searching(Tool("read", "w"), "partial_result")
    await engine.setup("s")
    (result,) = await engine.execute("s", [CALL])
    assert (result.result, len(engine.asked)) == (1, 1)


async def test_decision_7_the_tool_gets_the_schema_defaults() -> None:
    engine = Counting(Tool("read", "w", parameters=PARAMETERS))
    await engine.setup("s")
    await engine.execute("s", [CALL])
    assert engine.asked == [{"city": "Rome", "unit": "celsius"}]
