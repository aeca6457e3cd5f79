"""A request under way: every argument put where its operation says it goes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engines.loaders.openapi.metadata import RestParameter
from engines.rest.bodies import json_text
from engines.rest.header_rules import checked_argument_header, checked_header
from engines.rest.styles import (
    Pairs,
    cookie_pairs,
    encoded,
    encoded_but_reserved,
    header_text,
    path_text,
    query_pairs,
)
from engines.rest.supplied import Reserved, Supplied


@dataclass(slots=True)
class Placing:
    """The parts of one request; what `reserved` names is passed over, the configuration fills it.

    Headers stand under their names in lower case, so that one given twice is one.
    """

    reserved: Reserved
    path: dict[str, str] = field(default_factory=dict)
    query: Pairs = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    cookies: Pairs = field(default_factory=list)
    fields: dict[str, tuple[RestParameter, Any]] = field(default_factory=dict)

    def put(self, parameter: RestParameter, value: Any) -> None:
        """Place one argument; ToolFailed for one that cannot stand there."""
        match parameter.location:
            case "path":
                text = path_text(parameter.name, _written(parameter, value), parameter.style, explode=parameter.explode)
                self.path[parameter.name] = text
            case "query":
                encode = encoded_but_reserved if parameter.allow_reserved else encoded
                value, style = _written(parameter, value), parameter.style
                self.query += query_pairs(parameter.name, value, style, explode=parameter.explode, encode=encode)
            case "header":
                self._put_header(parameter, value)
            case "cookie":
                self.cookies += cookie_pairs(parameter.name, _written(parameter, value), explode=parameter.explode)
            case "body":
                self.fields[parameter.name] = (parameter, value)

    def put_undeclared(self, argument: str, value: Any) -> None:
        """Send in the query what the operation does not declare (rule D57)."""
        self.query += query_pairs(argument, value)

    def supply(self, supplied: Supplied) -> None:
        """Put the configuration's values over the arguments'."""
        for name, text in supplied.path.items():
            self.path[name] = path_text(name, text)
        for name, text in supplied.headers.items():
            self.headers[name.lower()] = checked_header(name, text)
        self.query = _without(self.query, self.reserved.query) + _pairs(supplied.query)
        self.cookies = _without(self.cookies, self.reserved.cookies) + _pairs(supplied.cookies)
        for name, value in supplied.body.items():
            self.fields[name] = (RestParameter.model_validate({"name": name, "location": "body"}), value)
        if self.cookies:
            text = "; ".join(f"{name}={value}" for name, value in self.cookies)
            self.headers["cookie"] = checked_header("Cookie", text)

    def _put_header(self, parameter: RestParameter, value: Any) -> None:
        if value is None or parameter.name.lower() in self.reserved.headers:
            return
        text = header_text(_written(parameter, value), explode=parameter.explode)
        self.headers[parameter.name.lower()] = checked_argument_header(parameter.name, text)


def _written(parameter: RestParameter, value: Any) -> Any:
    """Return what the style is applied to: the value, or its JSON where the document says so."""
    if parameter.content_type is None or isinstance(value, str) or value is None:
        return value
    return json_text(value)


def _pairs(values: Mapping[str, str]) -> Pairs:
    return [(encoded(name), encoded(value)) for name, value in values.items()]


def _without(pairs: Pairs, reserved: frozenset[str]) -> Pairs:
    """Drop the pairs that would stand in for what the configuration says."""
    if not reserved or not pairs:
        return pairs
    names = {encoded(name) for name in reserved}
    return [pair for pair in pairs if pair[0] not in names]
