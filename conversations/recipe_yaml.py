"""Reads YAML that may be hostile: no tags, few aliases, no duplicate keys, bounded depth and size (rule S16)."""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from conversations.errors import RecipeInvalid
from conversations.messages import JSONObject
from conversations.places import Place
from conversations.recipe_source import Position, RecipeSource, plain_scalar

_VALUES = re.compile(r' with value ".*\(original value: ".*"\)', re.DOTALL)  # a duplicate key's: it may be a secret
MOST_LEVELS = 64
MOST_ALIASES = 100
MOST_VALUES = 200_000
# `{api_key: ${KEY}}` is what people write, but in there YAML takes the braces for its own. So, while YAML looks, a
# reference's braces are other characters: two that nobody uses, one for one, so that every column stays what it is.
_OPEN, _CLOSE = "\ue0f0", "\ue0f1"
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*+(?::-(?:[^}$\n]|\$(?!\{))*+)?)\}")
_DISGUISED = re.compile(rf"\${_OPEN}([^{_CLOSE}]*){_CLOSE}")


def read_yaml(text: str, file: str) -> RecipeSource:
    """The one document of the text; RecipeInvalid says where it is wrong."""
    from ruamel.yaml import YAML  # noqa: PLC0415 (0.1 s, and workers never need it)
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415

    text = _REFERENCE.sub(rf"${_OPEN}\1{_CLOSE}", text)
    try:
        _check_events(YAML(typ="rt", pure=True).parse(io.StringIO(text)), file)
        document = YAML(typ="rt", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = _VALUES.sub("", " ".join(str(part) for part in (error.problem, error.context) if part))
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise RecipeInvalid(f"not valid YAML: {message}", file=file, line=line, column=column) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise RecipeInvalid(f"not valid YAML: {error}", file=file) from None
    if not isinstance(document, dict):
        raise RecipeInvalid("a recipe is a mapping of keys such as `model:` and `tools:`", file=file, line=1, column=1)
    reading = _Reading(file)
    return RecipeSource(file, reading.mapping(document, ()), reading.keys, reading.values)


def _check_events(events: Any, file: str) -> None:
    """Refuse what could hurt while it is still a stream of events: nothing is built or expanded yet."""
    open_anchors: list[str | None] = []
    aliases = 0
    for event in events:
        kind = type(event).__name__
        at = {"file": file, "line": event.start_mark.line + 1, "column": event.start_mark.column + 1}
        if getattr(event, "tag", None):
            raise RecipeInvalid(f"the tag {_shown(event.tag)} is not allowed in a recipe", hint="remove it", **at)
        if kind in {"MappingStartEvent", "SequenceStartEvent"}:
            open_anchors.append(event.anchor)
            if len(open_anchors) > MOST_LEVELS:
                raise RecipeInvalid(f"nested deeper than {MOST_LEVELS} levels", **at)
        elif kind in {"MappingEndEvent", "SequenceEndEvent"}:
            open_anchors.pop()
        elif kind == "AliasEvent":
            aliases += 1
            if aliases > MOST_ALIASES:
                raise RecipeInvalid(f"more than {MOST_ALIASES} aliases (`*name`)", hint="write the values out", **at)
            if event.anchor in open_anchors:
                raise RecipeInvalid(f"`*{event.anchor}` stands inside of what it names", **at)


@dataclass(slots=True)
class _Reading:
    """One walk over ruamel's tree: plain values, and where they stand."""

    file: str
    keys: dict[Place, Position] = field(default_factory=dict)
    values: dict[Place, Position] = field(default_factory=dict)
    count: int = 0

    def mapping(self, node: Any, at: Place) -> JSONObject:
        own = node.lc.data or {}
        plain: JSONObject = {}
        for key, value in node.items():
            place = (*at, _with_references(str(key)))
            if key in own:
                line, column, value_line, value_column = own[key]
                self.keys[place] = Position(line + 1, column + 1)
                self.values[place] = Position(value_line + 1, value_column + 1)
            if not isinstance(key, str):
                raise self._invalid(place, f"the key {key!r} is not text", hint="put it in quotes", of_key=True)
            plain[_with_references(key)] = self._value(value, place)
        return plain

    def _sequence(self, node: Sequence[Any], at: Place) -> list[Any]:
        plain = []
        for index, value in enumerate(node):
            place = (*at, index)
            line, column = node.lc.data[index][:2]  # type: ignore[attr-defined]
            self.keys[place] = self.values[place] = Position(line + 1, column + 1)
            plain.append(self._value(value, place))
        return plain

    def _value(self, value: Any, at: Place) -> Any:
        self.count += 1
        if self.count > MOST_VALUES:
            raise self._invalid(at, f"more than {MOST_VALUES} values once its aliases are written out")
        if len(at) > MOST_LEVELS:
            raise self._invalid(at, f"nested deeper than {MOST_LEVELS} levels")
        if isinstance(value, dict):
            return self.mapping(value, at)
        if isinstance(value, list):
            return self._sequence(value, at)
        if isinstance(value, str):
            return _with_references(value)
        try:
            return plain_scalar(value)
        except ValueError as error:
            raise self._invalid(at, str(error)) from None

    def _invalid(self, place: Place, message: str, *, hint: str = "", of_key: bool = False) -> RecipeInvalid:
        source = RecipeSource(self.file, {}, self.keys, self.values)
        return source.invalid(place, message, hint=hint, of_key=of_key)


def _with_references(text: str) -> str:
    return _DISGUISED.sub(r"${\1}", text) if _OPEN in text else str(text)


def _shown(tag: Any) -> str:
    return repr(str(tag)[:80])
