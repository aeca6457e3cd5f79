"""The stored form of a state's deltas: version and digest around a JSON body, checked on the way back (rule F38)."""

import hashlib
from collections.abc import Sequence
from typing import Any

import orjson

from conversations.errors import CheckpointUnusable

VERSION = 1
_DIGEST_BYTES = 8
_HEAD = b'{"version":%d,"digest":"' % VERSION
_NECK = b'","body":'
_BODY_AT = len(_HEAD) + 2 * _DIGEST_BYTES + len(_NECK)


def sealed(body: bytes) -> bytes:
    """`{"version", "digest", "body"}` around a JSON body, which is not parsed again."""
    return b"".join((_HEAD, _digest(body), _NECK, body, b"}"))


def opened(delta: bytes) -> dict[str, Any]:
    """The body of a sealed delta; CheckpointUnusable when a byte of it is not as it was written."""
    head, digest, body = delta[: len(_HEAD)], delta[len(_HEAD) : len(_HEAD) + 2 * _DIGEST_BYTES], delta[_BODY_AT:-1]
    if head != _HEAD:
        raise CheckpointUnusable(f"a checkpoint is empty, damaged or not of version {VERSION}; it is left out")
    if delta[_BODY_AT - len(_NECK) : _BODY_AT] != _NECK or delta[-1:] != b"}" or digest != _digest(body):
        raise CheckpointUnusable("a checkpoint is damaged: its digest does not fit its bytes; it is left out")
    opened_body = orjson.loads(body)
    if not isinstance(opened_body, dict):
        raise CheckpointUnusable("a checkpoint holds no object; it is left out")
    return opened_body


def spliced(encoded: Sequence[bytes]) -> list[orjson.Fragment]:
    """Values that are JSON already, for a document around them."""
    return [orjson.Fragment(part) for part in encoded]


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).hexdigest().encode()
