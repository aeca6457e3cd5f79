"""Text on the terminal: where messages go, and how text from elsewhere is made safe to print."""

import json
import re
import sys

from producer.outcome import Summary

# C0 except tab and newline, DEL, C1, and the marks that reverse the direction of text (S18).
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` with every character that could steer a terminal written as an escape."""
    return _UNSAFE.sub(lambda match: match.group().encode("unicode_escape", "surrogatepass").decode(), text)


def say(message: str) -> None:
    """Tell the person something, on stderr: stdout belongs to results."""
    print(printable(message), file=sys.stderr, flush=True)  # noqa: T201 - this is the one place that prints


def show_summary(summary: Summary, *, as_json: bool) -> None:
    """Print how a run stands on stdout: for a person, or as the one JSON object that is the last line."""
    text = json.dumps(summary.to_json()) if as_json else printable(summary.to_text())
    print(text, flush=True)  # noqa: T201
