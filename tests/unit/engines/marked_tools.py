"""A module whose tools are marked."""

from engines.local.declared import tool


@tool
def plain() -> str:
    """Says hello."""
    return "hello"


@tool(
    name="get-weather",
    description="The weather, in other words.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    read_only=True,
    strict=True,
    input_examples=[{"city": "Rome"}],
)
async def weather(city: str) -> str:
    """Is not what the model reads."""
    return f"sunny in {city}"


def not_a_tool() -> str:
    return "unmarked"
