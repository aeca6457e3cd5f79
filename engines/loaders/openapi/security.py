"""A document's security schemes: told in words, and kept out of a tool's arguments. Their values are the engine's."""

from typing import Any

from engines.loaders.openapi.references import Document
from engines.plain import JSONObject


class SecuritySchemes:
    """What the document calls by which name."""

    def __init__(self, document: Document) -> None:
        components = document.root.get("components")
        written = components.get("securitySchemes") if isinstance(components, dict) else None
        self._everywhere = document.root.get("security")
        self._schemes: dict[str, JSONObject] = {}
        for name, scheme in (written if isinstance(written, dict) else {}).items():
            resolved = document.resolved(scheme)
            if isinstance(resolved, dict):
                self._schemes[name] = resolved
        self._places = {
            (str(scheme.get("in")), _folded(scheme.get("in"), scheme.get("name")))
            for scheme in self._schemes.values()
            if scheme.get("type") == "apiKey"
        }

    def is_credential(self, location: str, name: str) -> bool:
        """Whether a parameter is the place of an API key: the configuration fills it, never a model."""
        return (location, _folded(location, name)) in self._places

    def of_operation(self, operation: JSONObject) -> tuple[str, ...]:
        """Return the schemes that one may use for an operation, in words: `bearerAuth: http bearer`."""
        needed = operation.get("security", self._everywhere)
        names = [
            name for each in (needed if isinstance(needed, list) else ()) if isinstance(each, dict) for name in each
        ]
        return tuple(f"{name}: {_words(self._schemes.get(name, {}))}" for name in dict.fromkeys(names))


def _folded(location: Any, name: Any) -> str:
    return str(name).lower() if location == "header" else str(name)


def _words(scheme: JSONObject) -> str:
    match scheme:
        case {"type": "apiKey", "name": str() as name, "in": str() as place}:
            return f"API key in {place} {name!r}"
        case {"type": "http", "scheme": str() as kind}:
            return f"http {kind.lower()}"
        case {"type": str() as kind}:
            return kind
        case _:
            return "not described"
