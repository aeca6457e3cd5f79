"""Secrets kept out of what a server says back: an echoed credential must not get into a conversation (rule S11)."""

import json
import re
from collections.abc import Iterable

MASK = b"***"
# Shorter ones are words that answers hold anyway.
_SHORTEST_SECRET = 8
_SECRET_HEADER = re.compile(r"auth|cookie|key|token|secret|password|credential|signature", re.IGNORECASE)


class Masking:
    """Replaces known secrets, also as they stand inside JSON strings."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1], _unquoted(secret))}
        self._secrets = sorted(
            (each.encode() for each in forms if len(each) >= _SHORTEST_SECRET), key=len, reverse=True
        )

    def __call__(self, body: bytes) -> bytes:
        """Return the body without the secrets."""
        for secret in self._secrets:
            if secret in body:
                body = body.replace(secret, MASK)
        return body


def is_secret_header(name: str) -> bool:
    """Whether a configured header of this name holds a secret rather than a tenant or a version."""
    return bool(_SECRET_HEADER.search(name))


def _unquoted(secret: str) -> str:
    """Return the credential of `Bearer …` and `Basic …` without the scheme."""
    return secret.partition(" ")[2] if secret.startswith(("Bearer ", "Basic ")) else secret
