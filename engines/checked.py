"""A part of the configuration read into its model, or one error that names the place and the nearest known key."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from engines.errors import ConfigurationInvalid, Place
from engines.nearest import hint

Model = TypeVar("Model", bound=BaseModel)


def checked(model: type[Model], data: Any, *, at: Place) -> Model:
    """Validate; ConfigurationInvalid tells the first problem (decision 11)."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = (*at, *problem["loc"])
        if problem["type"] == "extra_forbidden":
            message = f"unknown key {str(problem['loc'][-1])!r}; {hint(str(problem['loc'][-1]), model.model_fields)}"
        elif problem["type"] == "missing":
            message = "this key is needed"
        else:
            message = problem["msg"].removeprefix("Value error, ")
        raise ConfigurationInvalid(message, at=place) from error
