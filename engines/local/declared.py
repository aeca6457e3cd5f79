"""`@tool`: what a function's author says of the tool it is, beside its signature and its docstring (rules E1, A21)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from engines.plain import JSONObject

_ATTRIBUTE = "__parley_tool__"
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the decorator was given; None leaves it to the signature and the docstring."""

    name: str | None = None
    description: str | None = None
    parameters: JSONObject | None = None
    output_parameters: JSONObject | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@overload
def tool(function: _Function) -> _Function: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: JSONObject | None = None,
    output_parameters: JSONObject | None = None,
    **metadata: Any,
) -> Callable[[_Function], _Function]: ...
def tool(
    function: _Function | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: JSONObject | None = None,
    output_parameters: JSONObject | None = None,
    **metadata: Any,
) -> _Function | Callable[[_Function], _Function]:
    """Mark a function as a tool; it stays the function it is. A module with marked functions offers those alone.

    `metadata` is kept with the tool: `read_only`, `idempotent`, `strict`, `input_examples`, `defaults`, and the like.
    """
    declaration = Declaration(name, description, parameters, output_parameters, metadata)

    def mark(marked: _Function) -> _Function:
        setattr(marked, _ATTRIBUTE, declaration)
        return marked

    return mark if function is None else mark(function)


def declaration_of(function: object) -> Declaration | None:
    """Return what was declared of a function; None when nothing was."""
    declared = getattr(function, _ATTRIBUTE, None)
    return declared if isinstance(declared, Declaration) else None
