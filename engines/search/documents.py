"""A document as searches return it, and how the fields of somebody's corpus become one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engines.plain import JSONObject, text_of

_TEXT_FIELDS, _ID_FIELDS = ("text", "body"), ("id", "doc_id", "_id")


@dataclass(frozen=True, slots=True)
class Document:
    """One hit; `score` is None where nothing was ranked (rule D84)."""

    id: str
    text: str
    score: float | None = None
    metadata: JSONObject = field(default_factory=dict)

    def to_dict(self) -> JSONObject:
        """`{"id", "text", "score"?, "metadata"?}`."""
        data: JSONObject = {"id": self.id, "text": self.text}
        if self.score is not None:
            data["score"] = round(self.score, 4)
        if self.metadata:
            data["metadata"] = self.metadata
        return data


@dataclass(frozen=True, slots=True)
class Projection:
    """Which field of a corpus is which of a document: `{headline: title, content: text, key: id}`.

    Without it `text` (or `body`) is the text and `id` (or `doc_id`) the id; all other fields are metadata.
    """

    named: Mapping[str, str] = field(default_factory=dict)

    def document(self, raw: Mapping[str, Any], *, position: int, score: float | None = None) -> Document:
        """Return one record as a document; one without an id is called by its position."""
        left = {key: value for key, value in raw.items() if key not in self.named}
        left |= {name: raw[key] for key, name in self.named.items() if key in raw}
        text = _taken(left, _TEXT_FIELDS, "")
        found_id = _taken(left, _ID_FIELDS, position)
        return Document(str(found_id), text_of(text), score, left)


def _taken(fields: dict[str, Any], names: tuple[str, ...], instead: Any) -> Any:
    for name in names:
        if fields.get(name) is not None:
            return fields.pop(name)
    return instead
