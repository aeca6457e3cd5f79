"""Text on the terminal: where messages go, and how text from elsewhere is made safe to print."""

import re
import sys

# C0 except tab and newline, DEL, C1, and the marks that reverse the direction of text (S18).
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` with every character that could steer a terminal written as an escape."""
    return _UNSAFE.sub(lambda match: match.group().encode("unicode_escape", "surrogatepass").decode(), text)


def say(message: str) -> None:
    """Tell the person something, on stderr: stdout belongs to results."""
    print(printable(message), file=sys.stderr, flush=True)  # noqa: T201 - this is how a command line speaks
