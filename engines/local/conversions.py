"""Arguments made into what a function's annotations ask for, where JSON has no such thing: enums, dates, models."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from engines.errors import ToolFailed
from engines.local.schemas import hints_of, is_plain
from engines.tool import ErrorType

Conversion = Callable[[Any], Any]


def conversions_of(function: Callable[..., Any], names: Iterable[str]) -> Mapping[str, Conversion]:
    """Return a conversion for each parameter that needs one; what nobody can make sense of gets the JSON as it is."""
    try:
        hints = hints_of(function)
    except (NameError, TypeError, AttributeError):
        return {}
    conversions: dict[str, Conversion] = {}
    for name in names:
        if name in hints and not is_plain(hints[name]):
            try:
                conversions[name] = _Converting(name, TypeAdapter(hints[name]))
            except PydanticUserError:
                continue
    return conversions


class _Converting:
    """One parameter's conversion, strict: nothing is coerced (decision 7)."""

    def __init__(self, name: str, adapter: TypeAdapter[Any]) -> None:
        self._name = name
        self._adapter = adapter

    def __call__(self, value: Any) -> Any:
        try:
            return self._adapter.validate_json(orjson.dumps(value), strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place = ".".join(str(step) for step in (self._name, *first["loc"]))
            raise ToolFailed(ErrorType.validation, f"invalid arguments: {place}: {first['msg']}") from error
