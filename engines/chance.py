"""Seeds: the same parts give the same number on every machine, in every process and Python version."""

import hashlib

_BITS_TO_DROP = 64 - 53


def derive_seed(*parts: str | int) -> int:
    """Return a 53-bit number (exact in JSON and in a float) made of the parts, their types and their order."""
    text = "\x1f".join(f"{'i' if isinstance(part, int) else 's'}{len(str(part))}:{part}" for part in parts)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> _BITS_TO_DROP
