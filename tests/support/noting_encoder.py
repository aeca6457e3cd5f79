"""Notes what a state encodes, so that encoding something twice shows."""

from typing import Any

import pytest

from conversations.encoding import encode_json


def noting_encoder(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every value that `conversations.state` encodes from now on."""
    encoded: list[Any] = []

    def noting(value: Any) -> bytes:
        encoded.append(value)
        return encode_json(value)

    monkeypatch.setattr("conversations.state.encode_json", noting)
    return encoded
