"""Checks of what is said: no refusal, no going round in circles, neither too short nor too long."""

from collections import Counter
from collections.abc import Sequence

from conversations.checks.finished import Finished
from conversations.checks.settings import Length, NoRefusal, NoRepetition
from conversations.messages import JSONObject, tool_calls_of

REFUSALS = (
    "i can't help with",
    "i cannot help with",
    "i can't assist with",
    "i cannot assist with",
    "i'm unable to help",
    "i am unable to help",
    "i'm not able to help",
    "i can't comply",
    "i cannot comply",
    "as an ai language model",
)
_SHOWN_CHARS = 80
_SEARCHED_CHARS = 20_000
_WORDS, _LETTERS = 8, 32  # how long a piece must be to tell a circle from a figure of speech
_MOST_TIMES = 3
_SHORT_WORDS = 12


class NoRefusalCheck:
    """What the assistant says when it will not."""

    name = "no_refusal"

    def __init__(self, settings: NoRefusal) -> None:
        self._phrases = tuple(phrase.casefold() for phrase in (*REFUSALS, *settings.phrases))

    async def objection(self, finished: Finished, notes: JSONObject) -> str | None:
        """Show the words."""
        if any(message.get("refusal") for message in finished.messages):
            return "the model refused"
        for text in finished.said:
            plain = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").casefold()
            for phrase in self._phrases:
                if phrase in plain:
                    return f"the assistant said {phrase!r}"
        return None


class NoRepetitionCheck:
    """A model that is caught in a loop says or does the same again and again."""

    name = "no_repetition"

    def __init__(self, settings: NoRepetition) -> None:
        self._times = settings.times

    async def objection(self, finished: Finished, notes: JSONObject) -> str | None:
        """Show what comes too often."""
        said = Counter(text.strip() for text in finished.said)
        calls = Counter(
            f"{call['function']['name']}({call['function']['arguments']})"
            for message in finished.messages
            for call in tool_calls_of(message)
        )
        for what, counted in (("text", said), ("call", calls)):
            for value, count in counted.items():
                if count >= self._times:
                    return f"the {what} {_cut(value)} comes {count} times, fewer than {self._times} may"
        for text in said:
            if (circle := _circle_in(text[:_SEARCHED_CHARS])) is not None:
                return f"a text goes round in circles: {_cut(circle)}"
        return None


class LengthCheck:
    """Bounds."""

    name = "length"

    def __init__(self, settings: Length) -> None:
        self._settings = settings

    async def objection(self, finished: Finished, notes: JSONObject) -> str | None:
        """Name the bound and the figure."""
        bounds = self._settings.model_dump(exclude={"type"}, exclude_none=True)
        figures = {
            "turns": finished.turns,
            "tool_calls": len(finished.tool_results),
            "chars": sum(map(len, finished.said)),
        }
        for name, figure in figures.items():
            if figure < bounds.get(f"min_{name}", 0):
                return f"{figure} {name.replace('_', ' ')}, at least {bounds[f'min_{name}']} must be"
            if figure > bounds.get(f"max_{name}", figure):
                return f"{figure} {name.replace('_', ' ')}, at most {bounds[f'max_{name}']} may be"
        return None


def _circle_in(text: str) -> str | None:
    """A piece of eight words that comes more than three times; of 32 characters where there are no words to speak of.

    Linear in the text: the loop waits meanwhile.
    """
    parts: Sequence[str] = text.split()
    length, between = _WORDS, " "
    if len(text) > _SHORT_WORDS * max(1, len(parts)):
        parts, length, between = text, _LETTERS, ""
    seen: Counter[tuple[str, ...]] = Counter()
    start = 0
    while start + length <= len(parts):
        piece = tuple(parts[start : start + length])
        seen[piece] += 1
        if seen[piece] > _MOST_TIMES:
            return between.join(piece)
        start += 1
    return None


def _cut(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")
