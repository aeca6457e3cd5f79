"""A tool's definition from a Python function: JSON Schemas of its signature, texts of its docstring (rule A21)."""

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from engines.errors import InvalidTool
from engines.local.context import Context
from engines.local.declared import Declaration, declaration_of
from engines.local.docstrings import Docstring, docstring_of
from engines.local.typed_dicts import without_typed_dicts
from engines.plain import JSONObject
from engines.tool import Tool

_PLAIN = frozenset({str, int, float, bool, type(None), object, inspect.Parameter.empty, list, dict})
_CONTAINERS = frozenset({list, dict, Sequence, Mapping, Union, types.UnionType})
_DATA = frozenset({"default", "const", "enum", "examples"})
_NAMED_SCHEMAS = frozenset({"properties", "$defs", "patternProperties"})
_NAMED = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})


class _Schemas(GenerateJsonSchema):
    """Leaves defaults out that have no JSON form, instead of warning."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012


def tool_of(function: Callable[..., Any], *, namespace: str) -> Tool:
    """Return the tool that a function is; InvalidTool names the function and what of it cannot be told in JSON."""
    declared = declaration_of(function) or Declaration()
    name = declared.name or function.__name__
    where = f"function {function.__module__}.{function.__qualname__}"
    docstring = docstring_of(function)
    try:
        hints = hints_of(function)
        parameters = declared.parameters or _parameters(function, hints, docstring)
        output = declared.output_parameters or _output(hints.get("return", Any))
    except (PydanticUserError, NameError, TypeError) as error:
        raise InvalidTool(f"{where}: {_first_line(error)}; annotate it with types that have a JSON form") from error
    except InvalidTool as error:
        raise InvalidTool(f"{where}: {error}") from error
    definition = {
        "name": name,
        "description": declared.description if declared.description is not None else docstring.description,
        "parameters": parameters,
        "output_parameters": output,
        "metadata": dict(declared.metadata),
    }
    return Tool.from_dict(definition, namespace=namespace)


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations, evaluated, with their metadata; NameError or TypeError when one cannot be."""
    return typing.get_type_hints(inspect.unwrap(function), include_extras=True)


def is_plain(annotation: Any, inside: frozenset[Any] = frozenset()) -> bool:
    """Whether a JSON value is already what the annotation asks for, as far as Python types go.

    `inside` are the TypedDicts around it: one that holds itself is as plain as the rest of it.
    """
    if annotation is Any or (isinstance(annotation, type) and annotation in _PLAIN):
        return True
    origin = get_origin(annotation)
    if origin is Annotated:
        return is_plain(get_args(annotation)[0], inside)
    if origin is Literal:
        return all(type(value) in _PLAIN for value in get_args(annotation))
    if origin in _CONTAINERS:
        return all(is_plain(part, inside) for part in get_args(annotation))
    if not typing.is_typeddict(annotation):
        return False
    around = inside | {annotation}
    return annotation in inside or all(is_plain(part, around) for part in typing.get_type_hints(annotation).values())


def is_context(parameter: inspect.Parameter, hint: Any) -> bool:
    """Whether a parameter is for the engine's context and no argument of the tool; InvalidTool for one misnamed."""
    if hint is Context and parameter.name != "context":
        raise InvalidTool(f"its parameter {parameter.name!r} is a Context; name it `context`")
    return parameter.name == "context" and (hint is Context or hint is inspect.Parameter.empty)


def _parameters(function: Callable[..., Any], hints: Mapping[str, Any], docstring: Docstring) -> JSONObject:
    """Return the schema of the arguments; the model's own field names are numbers, so that no name is taken."""
    fields: dict[str, Any] = {}
    takes_any = False
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name, parameter.annotation)
        if is_context(parameter, hint):
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            takes_any = True
        elif parameter.kind not in _NAMED:
            raise InvalidTool(f"its parameter {parameter.name!r} cannot be given by name, as arguments of tools are")
        else:
            fields[f"p{len(fields)}"] = _field(parameter, hint)
    config = ConfigDict(extra="allow" if takes_any else "forbid")
    model: type[BaseModel] = create_model("Arguments", __config__=config, **fields)
    schema: JSONObject = _untitled(model.model_json_schema(by_alias=True, schema_generator=_Schemas))
    for name, described in schema.setdefault("properties", {}).items():
        if name in docstring.parameters:
            described.setdefault("description", docstring.parameters[name])
    return schema


def _field(parameter: inspect.Parameter, hint: Any) -> tuple[Any, Any]:
    annotation = Any if hint is inspect.Parameter.empty else without_typed_dicts(hint)
    if parameter.default is inspect.Parameter.empty:
        return annotation, Field(alias=parameter.name)
    return annotation, Field(alias=parameter.name, default=parameter.default)


def _output(hint: Any) -> JSONObject | None:
    """Return the schema of what the function gives; None where it says no more than "an object" or is no object."""
    try:
        schema: JSONObject = _untitled(
            TypeAdapter(without_typed_dicts(hint)).json_schema(mode="serialization", schema_generator=_Schemas)
        )
    except PydanticUserError:
        return None  # What a tool gives is turned into JSON anyway.
    return schema if schema.get("type") == "object" and "properties" in schema else None


def _untitled(schema: Any) -> Any:
    """Leave the titles out that pydantic makes of names: they tell a model nothing new."""
    if isinstance(schema, list):
        return [_untitled(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value
        if key in _DATA
        else {name: _untitled(part) for name, part in value.items()}
        if key in _NAMED_SCHEMAS
        else _untitled(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
