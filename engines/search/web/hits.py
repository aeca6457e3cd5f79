"""A hit of a web search as a document: the snippet is the text. The pages themselves are never fetched."""

from typing import Any

from engines.search.documents import Document


def web_document(position: int, *, title: Any, url: Any, snippet: Any) -> Document:
    """Return the document of a result page's n-th hit; nothing is ranked by a number."""
    metadata = {key: value for key, value in (("title", title), ("url", url)) if isinstance(value, str) and value}
    return Document(str(position), snippet if isinstance(snippet, str) else "", None, metadata)
