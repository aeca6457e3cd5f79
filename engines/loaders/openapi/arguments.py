"""The arguments of one tool in the making: parameters and fields of the body, gathered under names of their own."""

from typing import Any

from pydantic import ValidationError

from engines.errors import InvalidTool
from engines.loaders.openapi.metadata import Location, RestParameter
from engines.loaders.openapi.naming import argument_name
from engines.plain import JSONObject


class Arguments:
    """A JSON Schema of an object, and for each of its properties where the value goes."""

    def __init__(self) -> None:
        self.parameters: dict[str, RestParameter] = {}
        self.properties: dict[str, JSONObject] = {}
        self.required: list[str] = []
        self.is_closed = False
        """Whether the document says that the body has no other fields."""

    def add(self, name: str, location: Location, schema: JSONObject, *, required: bool, **written: Any) -> str:
        """Add what is sent as `name` at `location`, and return its argument; `written` says how (see RestParameter)."""
        argument = argument_name(name, location, self.properties)
        try:
            self.parameters[argument] = RestParameter.model_validate(
                {"name": name, "location": location, "required": required, **written}
            )
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            place = ".".join(map(str, problem["loc"]))
            raise InvalidTool(f"parameter {name!r}: {place}: {problem['msg']}") from error
        self.properties[argument] = schema
        if required:
            self.required.append(argument)
        return argument

    def schema(self) -> JSONObject:
        """Return the schema, not yet completed by its definitions."""
        schema: JSONObject = {"type": "object", "properties": self.properties}
        if self.required:
            schema["required"] = self.required
        if self.is_closed:
            schema["additionalProperties"] = False
        return schema
