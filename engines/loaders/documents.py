"""A YAML, JSON or TOML file read as plain JSON, with limits: size, doubled keys, aliases that expand into bombs."""

import datetime as dt
import json
import math
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from engines.errors import InvalidTool
from engines.loaders.toml_text import parsed_toml
from engines.plain import JSONObject

MAX_BYTES = 16 << 20
MAX_EXPANDED_NODES = 2_000_000
SUFFIXES = (".yaml", ".yml", ".json", ".toml")


def read_document(path: Path) -> Any:
    """Return the file's content; InvalidTool says what is wrong and where (`file:line:column`)."""
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidTool(f"{path}: tools are read from {', '.join(SUFFIXES)} files, not {path.suffix or 'this'!r}")
    return document_of(_read_bytes(path), source=str(path), suffix=path.suffix.lower())


def document_of(data: bytes, *, source: str, suffix: str) -> Any:
    """Return what these bytes hold, whose form is that of a file with the suffix; `source` is named in errors."""
    if len(data) > MAX_BYTES:
        raise InvalidTool(f"{source}: larger than {MAX_BYTES >> 20} MB; split the file")
    try:
        return _plain(_PARSERS.get(suffix, _from_yaml)(data.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        raise InvalidTool(f"{source}: not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except MarkedYAMLError as error:
        mark = error.problem_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark is not None else ""
        raise InvalidTool(f"{source}{place}: {_first_line(error.problem) or 'not YAML'}") from error
    except json.JSONDecodeError as error:
        raise InvalidTool(f"{source}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except (YAMLError, ValueError) as error:
        raise InvalidTool(f"{source}: {_first_line(error)}") from error
    except RecursionError as error:
        raise InvalidTool(f"{source}: nested too deeply") from error


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidTool(f"{path}: cannot be read: {error.strerror}; check the path") from error


def _from_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_without_doubles)


def _without_doubles(pairs: list[tuple[str, Any]]) -> JSONObject:
    read = dict(pairs)
    if len(read) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands twice in one object")
    return read


def _from_toml(text: str) -> Any:
    """TOML's parser refuses doubled keys itself and has no aliases; it tells the place in its message."""
    try:
        return parsed_toml(text)
    except ValueError as error:
        raise ValueError(f"not TOML: {error}") from error


def _from_yaml(text: str) -> Any:
    """Compose, weigh, then construct: merge keys multiply while the document is constructed, so weigh before."""
    yaml = YAML(typ="safe", pure=True)
    node = yaml.compose(text)
    if node is None:
        return None
    _weigh(node, {})
    return yaml.constructor.construct_document(node)


def _weigh(node: Node, known: dict[int, int | None]) -> int:
    """Return how many nodes this one expands to, each node visited once; ValueError for a bomb or a circle."""
    if id(node) in known:
        weight = known[id(node)]
        if weight is None:
            raise ValueError("an alias contains itself")
        return weight
    known[id(node)] = None
    weight = 1
    if isinstance(node, MappingNode):
        weight += sum(_weigh(key, known) + _weigh(value, known) for key, value in node.value)
    elif isinstance(node, SequenceNode):
        weight += sum(_weigh(item, known) for item in node.value)
    if weight > MAX_EXPANDED_NODES:
        raise ValueError(f"its aliases expand to more than {MAX_EXPANDED_NODES:,} values")
    known[id(node)] = weight
    return weight


def _plain(value: Any) -> Any:
    """Return a JSON copy: dates as ISO text, keys as text, nothing shared."""
    match value:
        case dict():
            plain = {_key(key): _plain(item) for key, item in value.items()}
            if len(plain) < len(value):
                raise ValueError(f"two keys of one object read as the same text, among: {', '.join(plain)}")
            return plain
        case list() | tuple() | set() | frozenset():
            return [_plain(item) for item in value]
        case dt.date() | dt.time():
            return value.isoformat()
        case float() if not math.isfinite(value):
            raise ValueError(f"{value} is no JSON number")
        case None | str() | bool() | int() | float():
            return value
        case _:
            raise ValueError(f"a {type(value).__name__} has no JSON form")


def _key(key: Any) -> str:
    match key:
        case str():
            return key
        case None | bool() | int():
            return json.dumps(key)
        case _:
            return str(_plain(key))


def _first_line(problem: object) -> str:
    return str(problem or "").strip().partition("\n")[0]


_PARSERS = {".json": _from_json, ".toml": _from_toml}
