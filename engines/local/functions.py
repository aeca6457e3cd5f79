"""The Python functions behind local tools: found and checked when the engine is built, bound to each call."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from engines.errors import ConfigurationInvalid, Place, ToolFailed
from engines.local.context import Context
from engines.local.conversions import Conversion, conversions_of
from engines.local.declared import declaration_of
from engines.nearest import hint
from engines.plain import JSONObject, copied
from engines.tool import ErrorType, Tool

_NAMED = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})


@dataclass(frozen=True, slots=True)
class LocalFunction:
    """One function and what it takes."""

    function: Callable[..., Any]
    is_async: bool
    accepted: frozenset[str] | None
    """The argument names it takes; None when it takes any."""
    required: frozenset[str]
    takes_context: bool
    conversions: Mapping[str, Conversion]
    """For arguments whose annotation asks for more than JSON has: an enum, a date, a model of the user's."""

    def keywords(self, arguments: JSONObject, context: Context) -> JSONObject:
        """Return what to call it with, a copy that it may change; ToolFailed(validation) when it cannot take it."""
        if self.accepted is not None and not arguments.keys() <= self.accepted:
            extra = ", ".join(sorted(arguments.keys() - self.accepted))
            takes = ", ".join(sorted(self.accepted)) or "none"
            raise ToolFailed(ErrorType.validation, f"invalid arguments: unknown {extra}; this tool takes: {takes}")
        if not self.required <= arguments.keys():
            missing = ", ".join(sorted(self.required - arguments.keys()))
            raise ToolFailed(ErrorType.validation, f"invalid arguments: missing {missing}")
        keywords: JSONObject = copied(arguments)
        for name, convert in self.conversions.items():
            if name in keywords:
                keywords[name] = convert(keywords[name])
        if self.takes_context:
            keywords["context"] = context
        return keywords


def imported(name: str, *, at: Place) -> ModuleType:
    """Import a module of the user's; ConfigurationInvalid says why it cannot be."""
    try:
        return importlib.import_module(name)
    except Exception as error:
        message = f"module {name!r} cannot be imported: {type(error).__name__}: {error}"
        raise ConfigurationInvalid(
            f"{message}; it must be importable where the engine runs (installed, or on PYTHONPATH)", at=at
        ) from error


def function_named(module: ModuleType, name: str, *, wanted_by: str, at: Place) -> Callable[..., Any]:
    """Return a module's function; ConfigurationInvalid names what was looked for and what there is."""
    found = getattr(module, name, None)
    if callable(found):
        return found  # type: ignore[no-any-return]  # Callable is all that is known of it.
    there = [key for key, value in vars(module).items() if inspect.isroutine(value) and not key.startswith("_")]
    cause = "no function" if found is None else f"a {type(found).__name__}, not a function,"
    raise ConfigurationInvalid(
        f"module {module.__name__!r} has {cause} {name!r} for {wanted_by}; {hint(name, there)}", at=at
    )


def local_function(module: ModuleType, chosen: str | None, tool: Tool, *, at: Place) -> LocalFunction:
    """Find a tool's function, the `chosen` one or its namesake, and check that it takes what the schema offers."""
    name = chosen or _namesake(module, tool)
    function = function_named(module, name, wanted_by=f"tool {tool.qualified_name!r}", at=at)
    if chosen is None:
        _refuse_foreign(module, name, function, at=at)
    return bound(function, tool, said=f"{module.__name__}.{name}", at=at)


def bound(function: Callable[..., Any], tool: Tool, *, said: str, at: Place = ()) -> LocalFunction:
    """Check that a function, `said` so in errors, takes what the schema of its tool offers."""
    parameters = _parameters(function)
    properties = (tool.parameters.get("properties") or {}).keys()
    takes_context = "context" in parameters and _is_context(parameters["context"], properties)
    named = {
        key: parameter
        for key, parameter in parameters.items()
        if parameter.kind in _NAMED and not (takes_context and key == "context")
    }
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    surplus = sorted(properties - named.keys())
    if surplus and not takes_any:
        message = f"function {said} does not take {', '.join(surplus)} of tool {tool.qualified_name!r}"
        raise ConfigurationInvalid(f"{message}; add the parameter, or **others", at=at)
    return LocalFunction(
        function=function,
        is_async=inspect.iscoroutinefunction(function),
        accepted=None if takes_any else frozenset(named),
        required=frozenset(key for key, parameter in named.items() if parameter.default is inspect.Parameter.empty),
        takes_context=takes_context,
        conversions=conversions_of(function, named),
    )


def _namesake(module: ModuleType, tool: Tool) -> str:
    """Return the name of the function that was declared as this tool, else the tool's own name."""
    for name, value in vars(module).items():
        declared = declaration_of(value)
        if declared is not None and declared.name == tool.name:
            return name
    return tool.name


def _refuse_foreign(module: ModuleType, name: str, function: Callable[..., Any], *, at: Place) -> None:
    """Refuse what a definition must not reach by its name alone: privates, and what the module merely imported (S23).

    Definitions may come from anywhere; a tool named `system` must not find the `system` of `from os import system`.
    """
    own = module.__name__
    home = getattr(function, "__module__", None) or ""
    is_foreign = (inspect.isroutine(function) or inspect.isclass(function)) and home != own
    is_offered = name in getattr(module, "__all__", ()) or declaration_of(function) is not None
    if name.startswith("_") or (is_foreign and not home.startswith(f"{own}.") and not is_offered):
        message = f"{own}.{name} is not the module's own public function (it is of {home or 'nowhere'!r})"
        raise ConfigurationInvalid(f"{message}; name it under `functions`, or in the module's __all__", at=at)


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except ValueError:  # Some builtins have no signature to read: let them take anything.
        return {"arguments": inspect.Parameter("arguments", inspect.Parameter.VAR_KEYWORD)}


def _is_context(parameter: inspect.Parameter, properties: Any) -> bool:
    """Whether `context` is ours: annotated so, or not annotated and not one of the tool's own parameters."""
    if parameter.annotation in {Context, "Context", "context.Context", "engines.local.context.Context"}:
        return True
    return parameter.annotation is inspect.Parameter.empty and "context" not in properties
