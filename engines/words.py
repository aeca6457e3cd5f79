"""From text to the words that carry its meaning: `orderIDs`, `order_id` and "the id of an order" share two of them."""

import re
import unicodedata

_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")  # Scripts without spaces: sign by sign.
_SEAM = re.compile(
    r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"  # orderId, HTTPResponse
    r"|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])"
    r"|(?=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])"
)
_TIED_ENDINGS = re.compile(r"(?<=[A-Z])s\b")  # The plural of an abbreviation: IDs, URLs.
_EMPTY_WORDS = frozenset(
    re.split(
        " ",
        "a an and are as at be been by can for from had has have if in into is it its may of on or such that the their "
        "them then there these this those to was were which will with would you your e g i eg ie etc",
    )
)
_PLURALS = (("sses", "ss"), ("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"))
_SHORTEST_PLURAL = 4


def words(text: str) -> list[str]:
    """Return the words in order, lower case and singular, compounds in camel case or with underscores taken apart."""
    plain = _TIED_ENDINGS.sub("", unicodedata.normalize("NFKC", text))
    parts = (part for run in _RUN.findall(plain) for part in _SEAM.split(run))
    found = (_singular(part.casefold()) for part in parts if part)
    return [word for word in found if word not in _EMPTY_WORDS]


def _singular(word: str) -> str:
    """Take an English plural's ending off; good enough to compare words, not to show them."""
    if len(word) < _SHORTEST_PLURAL or not word.endswith("s"):
        return word
    for ending, instead in _PLURALS:
        if word.endswith(ending):
            return word[: -len(ending)] + instead
    return word if word.endswith(("ss", "us", "is")) else word[:-1]
