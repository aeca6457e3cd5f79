"""What a function's docstring says: what the function does, and what each parameter means.

Understood are Google's sections (`Args:`), NumPy's (underlined `Parameters`) and Sphinx's fields (`:param name:`).
"""

import inspect
import re
from dataclasses import dataclass, field

_GOOGLE = re.compile(r"(?P<title>[A-Z][A-Za-z ]*):\s*")
_ARGUMENTS = frozenset(
    {"Args", "Arguments", "Parameters", "Params", "Keyword Args", "Keyword Arguments", "Other Parameters"}
)
_OTHERS = frozenset(
    {"Returns", "Return", "Yields", "Yield", "Raises", "Raise", "Example", "Examples", "Note", "Notes", "Warns"}
    | {"Warning", "Warnings", "See Also", "References", "Attributes", "Todo"}
)
_RULE = re.compile(r"-{3,}\s*")
_GOOGLE_ITEM = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\([^)]*\))?\s*:\s*(?P<text>.*)")
_NUMPY_ITEM = re.compile(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_SPHINX = re.compile(r":(?P<kind>\w+)(?:\s+(?P<words>[^:]*))?:\s*(?P<text>.*)")
_SPHINX_PARAMETERS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})


@dataclass(frozen=True, slots=True)
class Docstring:
    """`description` is what stands before the sections; `parameters` maps names to texts."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def docstring_of(function: object) -> Docstring:
    """Read a function's docstring; empty where there is none."""
    text = inspect.getdoc(function)
    return _parsed(text.splitlines()) if text else Docstring()


def _parsed(lines: list[str]) -> Docstring:
    description: list[str] = []
    parameters: dict[str, str] = {}
    position = 0
    while position < len(lines):
        section, length = _section_at(lines, position)
        if section is not None:
            body, end = _body(lines, position + length, is_indented=length == 1)
            if section in _ARGUMENTS:
                parameters |= _google_items(body) if length == 1 else _numpy_items(body)
            position = end
        elif field_ := _SPHINX.fullmatch(lines[position].strip()):
            text, position = _field_text(lines, position, field_["text"])
            if field_["kind"] in _SPHINX_PARAMETERS and field_["words"]:
                parameters[field_["words"].split()[-1].lstrip("*")] = text
        else:
            description.append(lines[position])
            position += 1
    return Docstring("\n".join(description).strip(), {name: text for name, text in parameters.items() if text})


def _section_at(lines: list[str], position: int) -> tuple[str | None, int]:
    """Return the section that begins here and how many lines its title takes; None when none does."""
    line = lines[position]
    google = _GOOGLE.fullmatch(line)
    if google and google["title"] in _ARGUMENTS | _OTHERS:
        return google["title"], 1
    is_underlined = position + 1 < len(lines) and _RULE.fullmatch(lines[position + 1]) is not None
    if is_underlined and line.strip() in _ARGUMENTS | _OTHERS:
        return line.strip(), 2
    return None, 0


def _body(lines: list[str], start: int, *, is_indented: bool) -> tuple[list[str], int]:
    """Return a section's lines and where it ends: Google's where the indentation does, NumPy's at the next title."""
    end = start
    while end < len(lines):
        if is_indented and lines[end].strip() and not lines[end].startswith((" ", "\t")):
            break
        if not is_indented and _section_at(lines, end)[0] is not None:
            break
        end += 1
    return inspect.cleandoc("\n" + "\n".join(lines[start:end])).splitlines(), end


def _google_items(body: list[str]) -> dict[str, str]:
    items: dict[str, list[str]] = {}
    name = ""
    for line in body:
        item = None if line.startswith((" ", "\t")) else _GOOGLE_ITEM.fullmatch(line)
        if item is not None:
            name = item["name"]
            items[name] = [item["text"]]
        elif name:
            items[name].append(line.strip())
    return {name: " ".join(filter(None, texts)) for name, texts in items.items()}


def _numpy_items(body: list[str]) -> dict[str, str]:
    items: dict[str, list[str]] = {}
    names: list[str] = []
    for line in body:
        item = None if line.startswith((" ", "\t")) else _NUMPY_ITEM.fullmatch(line)
        if item is not None:
            names = [name.strip().lstrip("*") for name in item["names"].split(",")]
            items |= {name: [] for name in names}
        else:
            for name in names:
                items[name].append(line.strip())
    return {name: " ".join(filter(None, texts)) for name, texts in items.items()}


def _field_text(lines: list[str], position: int, first: str) -> tuple[str, int]:
    """Return a Sphinx field's text, with the indented lines that follow, and where it ends."""
    texts = [first]
    position += 1
    while position < len(lines) and lines[position].startswith((" ", "\t")) and lines[position].strip():
        texts.append(lines[position].strip())
        position += 1
    return " ".join(filter(None, texts)), position
