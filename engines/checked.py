"""A part of the configuration read into its model, or one error that names the place and the nearest known key."""

from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from engines.errors import Place, SettingsInvalid
from engines.nearest import hint

Model = TypeVar("Model", bound=BaseModel)


def checked(model: type[Model], data: Any, *, at: Place) -> Model:
    """Validate; SettingsInvalid tells the first problem (decision 11)."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = (*at, *problem["loc"])
        if problem["type"] == "extra_forbidden":
            key = str(problem["loc"][-1])
            message = f"unknown key {key!r}; {hint(key, _known_keys(model, problem['loc'][:-1]))}"
        elif problem["type"] == "missing":
            message = "this key is needed"
        else:
            message = problem["msg"].removeprefix("Value error, ")
        raise SettingsInvalid(message, at=place) from error


def _known_keys(model: type[BaseModel], place: Place) -> list[str]:
    """Return the keys of the block at this path: names of entries and of union members lead to no other model."""
    inner = model
    for step in place:
        if step in inner.model_fields:
            inner = _model_in(inner.model_fields[str(step)].annotation) or inner
    return list(inner.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model inside an annotation such as `dict[str, Settings]` or `Settings | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part)) is not None), None)
