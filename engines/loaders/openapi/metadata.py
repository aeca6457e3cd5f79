"""What a tool's metadata says about the HTTP operation behind it: the loader writes it, the rest engine reads it.

Kept in `Tool.metadata` under keys that start with `rest_` (rule D48). A tool written by hand needs only
`rest_method`, `rest_path` and, where an argument is no query parameter, `rest_param_locations`.
"""

from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from engines.errors import InvalidTool
from engines.nearest import hint
from engines.plain import JSONObject
from engines.tool import Tool

Location = Literal["path", "query", "header", "cookie", "body"]
Style = Literal[
    "simple", "form", "label", "matrix", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"
]  # tabDelimited is Swagger's `tsv`, which OpenAPI 3 has no word for.

LOCATIONS: tuple[str, ...] = get_args(Location)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")

_STYLES: dict[Location, Style] = {
    "path": "simple", "query": "form", "header": "simple", "cookie": "form", "body": "form"
}  # fmt: skip


class RestParameter(BaseModel):
    """Where one argument goes and how its value is written there (OpenAPI's parameter and encoding objects).

    Without a `style`, it is OpenAPI's default for the place: `simple` in path and header, else `form`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """The name on the wire; the argument's own may differ (`filter[age]` is no argument name)."""

    location: Location
    style: Style
    explode: bool
    required: bool = False
    allow_reserved: bool = False
    content_type: str | None = None
    """The value is written as this media type and not by style: JSON in a query parameter, one part of a multipart."""

    base64: bool = False
    """The argument is base64 text; what is sent are its bytes."""

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_the_place(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        style = data.get("style") or _STYLES.get(data.get("location", "query"), "form")
        explode = data.get("explode")
        return {**data, "style": style, "explode": style == "form" if explode is None else explode}

    def to_metadata(self, argument: str) -> JSONObject:
        """Return what a reader could not guess, and always the place."""
        written: JSONObject = {"in": self.location}
        if self.name != argument:
            written["name"] = self.name
        if self.style != _STYLES[self.location]:
            written["style"] = self.style
        if self.explode is not (self.style == "form"):
            written["explode"] = self.explode
        rest = self.model_dump(exclude={"name", "location", "style", "explode"}, exclude_defaults=True)
        return written | rest


class RestBody(BaseModel):
    """How the request's body is made of the arguments.

    `fields`: an object (or form) of the arguments whose location is `body`; `whole`: the value of `argument` alone.
    A body that is not `required` is left out when none of its arguments is given.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    content_type: str = "application/json"
    required: bool = False
    mode: Literal["fields", "whole"] = "fields"
    argument: str | None = None
    base64: bool = False
    """`whole` only: the argument is base64 text; what is sent are its bytes."""

    @model_validator(mode="after")
    def _whole_names_its_argument(self) -> Self:
        if (self.mode == "whole") is (self.argument is None):
            raise ValueError("a body of mode 'whole' names its argument, one of mode 'fields' names none")
        return self

    def to_metadata(self) -> JSONObject:
        """Return the body as `rest_request_body` has it."""
        written: JSONObject = {"content_type": self.content_type, "mode": self.mode}
        return written | self.model_dump(exclude_defaults=True)


class RestOperation(BaseModel):
    """One operation: everything the rest engine needs to make a request of a call's arguments."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: str
    path: str
    """The template, `/pets/{petId}`; braces hold names on the wire."""

    base_url: str | None = None
    """None: only the engine's `url` says where the API is."""

    base_from: Literal["recipe", "document"] = "recipe"
    """Who named the host of `base_url`; one that a document names has no right to private addresses."""

    parameters: dict[str, RestParameter] = Field(default_factory=dict)
    """By argument name. An argument that is not in it goes to the query under its own name (rule D57)."""

    body: RestBody | None = None
    accept: str | None = None
    """The media type to ask for; None: whatever the server likes to send."""

    security: tuple[str, ...] = ()
    """The document's security schemes for this operation (`bearerAuth: http bearer`), to be told in messages."""

    @field_validator("method")
    @classmethod
    def _known_method(cls, method: str) -> str:
        if method.upper() not in METHODS:
            raise ValueError(f"no method {method!r}; {hint(method.upper(), METHODS)}")
        return method.upper()

    def to_metadata(self) -> JSONObject:
        """Return the `rest_…` keys of a tool's metadata."""
        metadata: JSONObject = {
            "rest_method": self.method,
            "rest_path": self.path,
            "rest_param_locations": {argument: each.location for argument, each in self.parameters.items()},
            "rest_parameters": {argument: each.to_metadata(argument) for argument, each in self.parameters.items()},
        }
        if self.body is not None:
            metadata["rest_request_body"] = self.body.to_metadata()
        if self.base_url is not None:
            metadata["rest_base_url"] = self.base_url
            metadata["rest_base_from"] = self.base_from
        if self.accept is not None:
            metadata["rest_accept"] = self.accept
        if self.security:
            metadata["rest_security"] = list(self.security)
        return metadata

    @classmethod
    def of(cls, tool: Tool) -> Self:
        """Read a tool's metadata; InvalidTool names the tool and what is missing or wrong."""
        metadata = tool.metadata
        for key in ("rest_method", "rest_path"):
            if not isinstance(metadata.get(key), str):
                message = (
                    f"tool {tool.qualified_name!r}: metadata.{key} is missing; load it by type openapi, or write it"
                )
                raise InvalidTool(message)
        try:
            return cls.model_validate(
                {
                    "method": metadata["rest_method"],
                    "path": metadata["rest_path"],
                    "base_url": metadata.get("rest_base_url"),
                    "base_from": metadata.get("rest_base_from", "recipe"),
                    "parameters": _parameters(metadata),
                    "body": _body(metadata),
                    "accept": metadata.get("rest_accept"),
                    "security": tuple(metadata.get("rest_security", ())),
                }
            )
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            place = ".".join(map(str, problem["loc"])) or "request_body"
            cause = problem["msg"].removeprefix("Value error, ")
            raise InvalidTool(f"tool {tool.qualified_name!r}: metadata.rest_{place}: {cause}") from error
        except (TypeError, ValueError, AttributeError) as error:
            raise InvalidTool(f"tool {tool.qualified_name!r}: its metadata cannot be read: {error}") from error


def _parameters(metadata: JSONObject) -> JSONObject:
    """Join `rest_param_locations` (all that a hand-written tool has) with `rest_parameters`, which says more."""
    read: JSONObject = {}
    for argument, location in (metadata.get("rest_param_locations") or {}).items():
        read[argument] = {"name": argument, "location": location, "required": location == "path"}
    for argument, written in (metadata.get("rest_parameters") or {}).items():
        given = {("location" if key == "in" else key): value for key, value in written.items()}
        read[argument] = {"name": argument, **read.get(argument, {}), **given}
    return read


def _body(metadata: JSONObject) -> JSONObject | None:
    """Return the body as written, or a JSON one where only locations tell that there is one."""
    written = metadata.get("rest_request_body")
    if written is not None:
        return dict(written)
    return {} if "body" in (metadata.get("rest_param_locations") or {}).values() else None
