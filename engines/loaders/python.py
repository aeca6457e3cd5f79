"""Tools from the functions of a Python module: `{type: python, module, functions?, exclude?, namespace?, engine?}`.

The engine that answers them is a `local` one on the same module: a recipe names modules, a definition never does.
"""

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from pydantic import Field

from engines.checked import checked
from engines.errors import ConfigurationInvalid, InvalidTool
from engines.loaders.entries import Entry, Surroundings
from engines.local.declared import declaration_of
from engines.local.functions import function_named, imported
from engines.local.schemas import tool_of
from engines.nearest import hint
from engines.plain import JSONObject
from engines.tool import DEFAULT_NAMESPACE, Tool


class PythonEntry(Entry):
    """A module that can be imported here and on the workers.

    Without `functions`, its tools are those marked with `@tool`, else those of `__all__`, else its public functions.
    """

    module: str = Field(min_length=1)
    functions: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()


def load(entry: JSONObject, surroundings: Surroundings) -> list[Tool]:
    """Make a tool of each function; ConfigurationInvalid says which function cannot be one, and why."""
    settings = checked(PythonEntry, entry, at=surroundings.at)
    module = imported(settings.module, at=(*surroundings.at, "module"))
    functions = dict(_functions_of(module, settings, surroundings))
    for name in settings.exclude:
        if functions.pop(name, None) is None:
            message = f"module {settings.module!r} offers no function {name!r}; {hint(name, functions)}"
            raise ConfigurationInvalid(message, at=(*surroundings.at, "exclude"))
    tools = []
    for function in functions.values():
        try:
            tools.append(tool_of(function, namespace=settings.namespace or DEFAULT_NAMESPACE))
        except InvalidTool as error:
            surroundings.leave_out(ConfigurationInvalid(str(error), at=(*surroundings.at, "module")))
    return tools


def _functions_of(
    module: ModuleType, settings: PythonEntry, surroundings: Surroundings
) -> Iterator[tuple[str, Callable[..., Any]]]:
    if settings.functions is not None:
        for index, name in enumerate(settings.functions):
            at = (*surroundings.at, "functions", index)
            yield name, function_named(module, name, wanted_by="the registry", at=at)
        return
    public = {name: value for name, value in vars(module).items() if not name.startswith("_") and _is_function(value)}
    marked = {name: value for name, value in public.items() if declaration_of(value) is not None}
    if marked:
        yield from marked.items()
    elif hasattr(module, "__all__"):
        yield from ((name, public[name]) for name in module.__all__ if name in public)
    else:
        yield from ((name, value) for name, value in public.items() if value.__module__ == module.__name__)


def _is_function(value: Any) -> bool:
    return inspect.isfunction(value) or inspect.isfunction(getattr(value, "__wrapped__", None))
